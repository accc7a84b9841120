"""The factor of a product that comes in tiles is asked for a tile ahead."""

from __future__ import annotations

import pytest
from kernel_examples import Writer, tensor

from kernelgen.composite.description import KernelDesc
from kernelgen.nest.nodes import Prefetch
from kernelgen.nest.text import show_index
from kernelgen.nest.walk import statements
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.transforms.cpu.prefetching.factors import LEVEL

LONG = 4096


def product(rows: int, terms: int, *, by_terms: bool) -> KernelDesc:
    """``x w`` of 64 columns, where ``x`` lies by terms or by rows."""
    w = Writer()
    x, y = tensor("x", *((terms, rows) if by_terms else (rows, terms))), tensor("w", terms, 64)
    return w.desc("product", (x, y), w.op("MatMul", x, y, shape=(rows, 64), transpose_a=by_terms, transpose_b=False))


def asked(desc: KernelDesc) -> list[str]:
    """What is asked for into the cache of tiles."""
    found = (part for part in statements(lower(desc, Plan()).nest.body) if isinstance(part, Prefetch))
    return [f"{hint.buffer.name}: {show_index(hint.place)}" for hint in found if hint.level == LEVEL]


def test_each_turn_asks_for_its_share_of_the_rows_a_tile_further_on() -> None:
    """Of 512 rows of 64 terms, eight elements in each of the 64 turns of eight rows."""
    assert asked(product(LONG, 64, by_terms=False)) == [f"x: c2*64 + {512 * 64} + (c3*8)"]


def test_a_term_asks_for_the_same_element_of_the_term_a_tile_further_on() -> None:
    """Tiles of 512 terms, each of 64 elements."""
    assert asked(product(64, LONG, by_terms=True)) == [f"x: c4*64 + c3 + {512 * 64}"]


@pytest.mark.parametrize(("rows", "terms", "by_terms"), [(256, 64, False), (64, LONG, False), (64, 256, True)])
def test_other_factors_are_not_asked_for(rows: int, terms: int, *, by_terms: bool) -> None:
    """They come in no tiles, or lie along their terms while those come in tiles."""
    assert asked(product(rows, terms, by_terms=by_terms)) == []
