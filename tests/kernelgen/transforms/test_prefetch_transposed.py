"""What a tile reads across is asked for while the tile before it is transposed."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.nest.nodes import Prefetch
from kernelgen.nest.text import show_index
from kernelgen.nest.walk import statements
from kernelgen.plan import Plan
from kernelgen.stages import lower


def turned(rows: int, columns: int, *, twice: bool = False) -> KernelDesc:
    """``x`` transposed; ``twice``: added to what it is multiplied by itself."""
    w, x = Writer(), tensor("x", rows, columns)
    result = w.op("Transpose", x, shape=(columns, rows), perm=(1, 0))
    if twice:
        result = w.op("Add", w.op("Mul", result, result, shape=(columns, rows)), result, shape=(columns, rows))
    return w.desc("turned", (x,), result)


def asked(desc: KernelDesc) -> list[str]:
    found = (part for part in statements(lower(desc, Plan()).nest.body) if isinstance(part, Prefetch))
    return [show_index(hint.place) for hint in found]


@pytest.mark.parametrize("twice", [False, True])
def test_a_row_of_a_tile_asks_for_the_lines_of_the_tile_behind_it(*, twice: bool) -> None:
    """Four lines of 16 elements, once also where an element is read several times."""
    found = asked(turned(1024, 320, twice=twice))
    assert len(found) == 4
    assert all("_row1*320" in place and " + 64" in place for place in found)
    assert [place.endswith(f" + {line}") for place, line in zip(found[1:], (16, 32, 48), strict=True)] == [True] * 3


def test_what_a_cache_holds_is_not_asked_for() -> None:
    assert asked(turned(128, 320)) == []


def test_asking_changes_no_result() -> None:
    x = np.random.default_rng(0).standard_normal((1030, 330)).astype(np.float32)
    (result,) = kernelgen.compile(turned(*x.shape))(x)
    np.testing.assert_array_equal(result, x.T)
