"""The golden files of the fusion patterns mean the same before and after (that they are what fusion gives, golden says)."""

from __future__ import annotations

from pathlib import Path

import pytest
from fusion_nets import same_numbers

from graphkernel.ops import OPS
from kernelgen.tensor.text import parse
from kernelgen.tensor.verify import verify
from tests.support.golden import Block, blocks

FILES = sorted((Path(__file__).parents[2] / "golden" / "fusion").glob("*.gk"))
BLOCKS = [block for path in FILES for block in blocks(path.read_text())]


@pytest.mark.parametrize("block", BLOCKS, ids=[block.case for block in BLOCKS])
def test_before_and_after_compute_the_same(block: Block) -> None:
    before, after = parse(block.before, OPS), parse(block.after, OPS)
    verify(after)
    if all(value.type.is_static for value in before.inputs):
        same_numbers(before, after)
