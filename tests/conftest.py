"""What every test run shares: a cache folder of its own, checked plans, device markers, golden files, hypothesis profiles."""

from __future__ import annotations

import gc
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

from kernelgen import kept_kernels
from kernelgen.made_elsewhere import ElsewhereKernel, Order
from tests.support.browser import CHROMIUM
from tests.support.checked_plans import checked_plans as checked_plans
from tests.support.golden import GoldenFile
from tests.support.shared_kernels import CACHE_VARIABLE
from tests.support.shared_kernels import shared_kernels as shared_kernels
from tests.support.sizes import size_report

MISSING = [name for name, place in {"torch": find_spec("torch"), "browser": CHROMIUM}.items() if place is None]
"""What is neither a dependency nor a device: the tests beside it are those of ``make test-torch`` and ``make test-browser``."""

collect_ignore = [f"with_{name}" for name in MISSING]
NVIDIA_DEVICE = Path("/dev/nvidia0")

hypothesis.settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
hypothesis.settings.register_profile("full", max_examples=500, deadline=None)
hypothesis.settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the results into the golden files")


def pytest_configure(config: pytest.Config) -> None:
    """One kernel cache for the run and its workers, away from the user's; the workers inherit the variable."""
    if not hasattr(config, "workerinput"):
        os.environ[CACHE_VARIABLE] = folder = tempfile.mkdtemp(prefix="graphkernel-tests-")
        config.add_cleanup(lambda: _remove(Path(folder)))


@pytest.fixture(autouse=True)
def made_by_this_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that all tests share is asked for no kernel as it was kept: a test may have changed what makes kernels. Those
    of kept kernels have folders of their own.
    """
    shared = os.environ[CACHE_VARIABLE]

    def recalled(order: Order) -> ElsewhereKernel | None:
        return None if os.environ.get(CACHE_VARIABLE) == shared else kept_kernels.recalled(order)

    monkeypatch.setattr("graphkernel.building.recalled", recalled)


def pytest_report_header() -> list[str]:
    """Says what is not collected, since what it is about is no dependency."""
    return [f"tests/with_{name}: not without {name} (make test-{name})" for name in MISSING]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
    return GoldenFile.from_parent(parent, path=file_path) if file_path.suffix == ".gk" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if NVIDIA_DEVICE.exists():
        return
    for item in items:
        if item.get_closest_marker("gpu") or item.get_closest_marker("device"):
            item.add_marker(pytest.mark.skip(reason=f"no CUDA device here ({NVIDIA_DEVICE} is missing)"))


def pytest_collection() -> None:
    """What is collected stays to the end: looking for garbage among it took a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """No later collection of garbage has to walk over what was collected."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """A whole run ends with the largest files and functions, as a guide."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        terminalreporter.section("sizes")
        terminalreporter.write_line(size_report())


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
