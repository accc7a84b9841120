"""Pieces of pieces: stored where they end up, left alone where something else reads them, and right on every target."""

from __future__ import annotations

import pytest

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym
from kernelgen.verify.record import Status
from kernelgen.verify.verify_one import verify
from tests.support.kernel_examples import Writer, tensor


def interleaved(rows: Dim, parts: int, row: int, is_summed: bool = False) -> KernelDesc:
    """Images side by side pixel by pixel, with a column and a row behind: ``y[:, p::parts, :] = x_p``."""
    w, columns, channels = Writer(), 4, 5
    images = [tensor(f"x{p}", rows, columns, channels) for p in range(parts)]
    column, last = tensor("c", rows, 1, channels), tensor("l", row, parts * columns + 1, channels)
    inner = [
        w.op("Reshape", w.op("Exp", x, shape=x.shape), shape=(rows, columns, 1, channels), dtype=None) for x in images
    ]
    both = w.op("Concat", *inner, shape=(rows, columns, parts, channels), axis=2)
    flat = w.op("Reshape", both, shape=(rows, parts * columns, channels))
    wide = w.op("Concat", flat, column, shape=(rows, parts * columns + 1, channels), axis=1)
    whole = w.op("Concat", wide, last, shape=(rows + row, parts * columns + 1, channels), axis=0)
    outputs: list[Tensor] = [whole]
    if is_summed:
        outputs.append(w.op("ReduceSum", wide, shape=(rows, channels), axis=(1,)))
    return w.desc("interleaved", (*images, column, last), *outputs)


def stores(desc: KernelDesc) -> str:
    return lower(desc, Plan(), "cpu").trail.texts["forward_stores"]()


@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend", "python"])
@pytest.mark.parametrize(
    "desc",
    [
        interleaved(3, 2, 1),
        interleaved(7, 3, 2),
        interleaved(sym("N"), 2, 1),
        interleaved(3, 2, 1, is_summed=True),
    ],
    ids=["two", "three", "any rows", "summed"],
)
def test_pieces_are_where_they_belong(desc: KernelDesc, target: str) -> None:
    record = verify(desc, target)
    assert record.status is Status.PASSED, record.message


def test_pieces_of_pieces_need_no_memory() -> None:
    found = stores(interleaved(3, 2, 1))
    assert "workspace" not in lower(interleaved(3, 2, 1), Plan(), "cpu").trail.texts["hoist"]()
    assert "[i0, i1*2 + 1, i2]" in found


def test_what_is_read_elsewhere_keeps_its_memory() -> None:
    """The columns of the wide image are added up, so it is an array of its own; its parts still lie in it at once."""
    found = stores(interleaved(3, 2, 1, is_summed=True))
    (wide,) = [line for line in found.splitlines() if "workspace" in line and "f32[3, 9, 5]" in line]
    assert "[i0, i1*2 + 1, i2]" in found
    assert wide
