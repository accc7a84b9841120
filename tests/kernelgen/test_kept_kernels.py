"""A kernel that was made before is taken from disk whole, for the same order, program and machine alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_examples import softmax
from operator_kernels import one

from kernelgen import kept_kernels as module
from kernelgen import options
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.kept_kernels import ROOM, keep, recalled
from kernelgen.made_elsewhere import ElsewhereKernel, Order, made_elsewhere
from kernelgen.made_for_others import told_of
from kernelgen.native import mapped
from kernelgen.native.records import code_of
from kernelgen.surroundings import surroundings

pytestmark = pytest.mark.skipif(not mapped.is_supported(), reason="machine code is given away on x86-64 Linux")

PRODUCT = one("MatMul", [("float32", (40, 70)), ("float32", (70, 50))], [("float32", (40, 50))])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    return tmp_path / ROOM


def kept(desc: KernelDesc, constants: tuple[int, ...] = ()) -> Order:
    """The order of a kernel that this process has made and kept."""
    order = Order(desc, constants)
    keep(order, lambda: told_of(compile(desc, constants=constants), 1.0))
    return order


def test_what_another_process_made_is_recalled_the_same() -> None:
    order = Order(PRODUCT, (1,))
    assert recalled(order) is None
    (made,) = made_elsewhere([order], 1, lambda _: None)
    found = recalled(order)
    assert isinstance(made, ElsewhereKernel)
    assert found is not None
    assert (found.source, found.proof, found.prepares, found.taken) == (
        made.source,
        made.proof,
        made.prepares,
        made.taken,
    )
    assert (found.signature, code_of(found)) == (made.signature, code_of(made))
    a, b = (np.random.default_rng(0).random(shape).astype(np.float32) for shape in ((40, 70), (70, 50)))
    np.testing.assert_allclose(found(a, *found.prepare(b))[0], a.astype(float) @ b, rtol=1e-5)


def test_what_this_process_made_is_recalled_as_cached() -> None:
    found = recalled(kept(softmax()))
    assert found is not None
    assert found.cached
    assert found.source == compile(softmax()).source


def test_another_order_is_another_kernel(folder: Path) -> None:
    kept(PRODUCT)
    assert recalled(Order(PRODUCT, (1,))) is None
    assert recalled(Order(softmax())) is None
    assert len(list(folder.glob("*/*.o"))) == 1


@pytest.mark.parametrize("what", ["thread_count", "processor_level"])
def test_other_surroundings_ask_again(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    order, before = kept(softmax()), surroundings()
    monkeypatch.setattr(options, what, lambda: "7")
    assert surroundings() != before
    assert recalled(order) is None


def test_programs_differ_by_sources_and_libraries() -> None:
    answers = {surroundings(), surroundings(("graphkernel", "kernelgen")), surroundings(libraries=("numpy",))}
    assert len(answers) == 3


def test_what_is_damaged_or_no_kernel_is_made_again(folder: Path) -> None:
    order = kept(softmax())
    keep(order, lambda: b'{"kernels": []}')
    assert recalled(order) is None
    (path,) = kept(softmax()) and folder.glob("*/*.o")
    assert recalled(order) is not None
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert recalled(order) is None


def test_what_text_does_not_hold_is_not_kept(folder: Path) -> None:
    hinted = kept(replace(softmax(), buffer_stitch=(("sum",),)))
    assert recalled(hinted) is None
    assert not folder.exists()


def test_without_a_folder_nothing_is_recalled(monkeypatch: pytest.MonkeyPatch) -> None:
    order = kept(softmax())
    monkeypatch.setattr(module.options, "cache_dir", lambda: None)
    assert recalled(order) is None
