"""Every kernel that MindSpore handed to AKG in the recorded networks compiles, agrees with the reference and is checked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.read import load_desc
from kernelgen.driver import compile
from kernelgen.verify import Status, verify

NETS = Path(__file__).parents[4] / "shared" / "mindspore_reference" / "nets"
LONG = ("chain_30_six_tanh", "chain_230")
SECONDS = 1.0
pytestmark = pytest.mark.skipif(
    not NETS.is_dir(), reason="the records of MindSpore's behaviour are not beside this checkout"
)


def kernels() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(NETS.glob("*.json")) if NETS.is_dir() else ():
        for position, kernel in enumerate(json.loads(path.read_text())["kernels"]):
            yield f"{path.stem}-{position}", untrimmed(kernel) if "trimmed" in kernel else kernel


def untrimmed(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """The records keep ten operators of the longest chain and the names of all: its five operators repeat."""
    shown, names = kernel["op_desc"], kernel["op_names"]
    period = 5
    assert [op["name"] for op in shown] == names[: len(shown)]
    ops = [*shown]
    for position in range(len(shown), len(names)):
        op = json.loads(json.dumps(shown[period + position % period]))
        assert op["name"] == names[position]
        op["input_desc"][0][0]["tensor_name"] = f"output_0_{position - 1}"
        op["output_desc"][0]["tensor_name"] = f"output_0_{position}"
        ops.append(op)
    return {**kernel, "op_desc": ops}


KERNELS = dict(kernels())


def description(name: str) -> KernelDesc:
    return load_desc(KERNELS[name])


def test_no_record_was_overlooked() -> None:
    assert len(KERNELS) == 83


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_agrees_and_is_checked(name: str) -> None:
    record = verify(description(name), checked=True)
    assert (record.status, record.message) == (Status.PASSED, "")
    assert "terms" in record.checked["kernel"] or "terms" in record.checked.get("small", ())


@pytest.mark.parametrize("name", [name for name in KERNELS if name.startswith(LONG)])
def test_what_akg_does_not_finish_takes_less_than_a_second(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    desc = description(name)
    start = time.process_time()
    compile(desc, target="cpu")
    assert time.process_time() - start < SECONDS
