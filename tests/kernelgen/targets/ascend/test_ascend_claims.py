"""What instructions claim is shown from the text for all turns, blocks and sizes; what is planted in it is rejected."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import kernel_examples as examples
import numpy as np
import pytest
from product_kernels import Shape, product

import kernelgen
from kernelgen.ascendc.expressions import Binary, Expression, Field, Name, Number
from kernelgen.errors import ArgumentError, ProofError
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.targets.ascend.proof.instruction_claims import check_claims
from kernelgen.targets.ascend.proof.scalar_bounds import Bounds
from kernelgen.tensor.dims import sym

SAMPLES = {
    "rows": lambda: examples.softmax(4096, 1024),
    "short rows": lambda: examples.softmax(4096, 100),
    "open rows": lambda: examples.softmax(sym("N"), 256),
    "columns": lambda: examples.column_sum(700, 5000),
    "half": lambda: examples.half_sum(50, 300),
    "transposed": lambda: examples.transpose_add(40, 50),
    "product": lambda: product(Shape(256, 256, 256), "float16"),
}


@cache
def text(name: str) -> str:
    return kernelgen.compile(SAMPLES[name](), "ascend").source


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_printed_is_shown_and_counted_in_the_proof(name: str) -> None:
    kernel = kernelgen.compile(SAMPLES[name](), "ascend")
    assert sum(check_claims(kernel.source, ASCEND_910B).values()) > 10
    assert len(kernel.proof.about("claims")) == 1


def planted(pattern: str, new: str) -> Callable[[str], str]:
    def plant(source: str) -> str:
        found, count = re.subn(pattern, new, source, count=1)
        assert count, pattern
        return found

    return plant


@pytest.mark.parametrize(
    ("name", "pattern", "new", "said"),
    [
        ("rows", r"Exp\((t_\d+), (t_\d+),", r"Exp(\1, \2[3],", "32 bytes"),
        ("rows", r"(in_0\[half_k_0 \* )4096\]", r"\g<1>4097]", "32 bytes"),
        ("rows", r"Exp\((t_\d+), (t_\d+), n_0 \* 1024\)", r"Exp(\1, \2, n_0 * 1024 + 8)", "end in it"),
        ("rows", r"Exp\((t_\d+), (t_\d+), n_0 \* 1024\)", r"Exp(\1, \2, n_0 - 1)", "1 at least"),
        ("rows", r"(Sub\(.*?, 64), n_0, ", r"\1, n_0 * 64, ", "255 at most"),
        ("rows", r"(Sub\(.*?), 64, n_0, ", r"\1, 65, n_0, ", "64 at most"),
        ("rows", r"(Sub\(.*BinaryRepeatParams\{1, 1, 0, )128,", r"\g<1>256,", "255 at most"),
        ("rows", r"(Sub\(.*BinaryRepeatParams\{1, 1, 0, )128,", r"\g<1>250,", "end in it"),
        ("rows", r"(Sub\(.*BinaryRepeatParams\{1, 1, 0, 128, )128,", r"\g<1>at_1,", "255 at most"),
        ("rows", r"(LocalTensor<float> in_0\(TPosition::VECCALC, )\d+,", r"\g<1>16,", "32 bytes"),
        ("rows", r"(LocalTensor<float> in_0\(TPosition::VECCALC, )\d+,", r"\g<1>190000,", "at most"),
        ("rows", r"static_cast<uint16_t>\(n_0\), 4096", r"static_cast<uint16_t>(n_0), 4128", "end in it"),
        ("rows", r"static_cast<uint16_t>\(n_0\), 4096", r"static_cast<uint16_t>(n_0 * 4096), 4096", "4095 at most"),
        ("rows", r"static_cast<uint16_t>\(n_0\), 4096", r"static_cast<uint16_t>(n_0), k_0 - 1", "1 at least"),
        ("rows", r"Brcb\((\w+), (\w+), \(n_0 \+ 7\) / 8", r"Brcb(\1, \2, (n_0 + 700) / 8", "end in it"),
        ("rows", r"\(total_0 - k_0 \* 4 < 4 \? total_0 - k_0 \* 4 : 4\)", r"(total_0 - k_0 * 4)", "at most|end in it"),
        ("open rows", r"(total_0 \+ \d+)\) / ", r"\1 + 64) / ", "1 at least"),
        ("product", r"(MmadParams\{)[^,]*,", r"\g<1>0,", "1 at least"),
        ("product", r"(LoadData\(\w+\[)", r"\g<1>8 + ", "bytes"),
    ],
)
def test_planted_claims_are_rejected(name: str, pattern: str, new: str, said: str) -> None:
    source = text(name)
    check_claims(source, ASCEND_910B)
    with pytest.raises(ProofError, match=said):
        check_claims(planted(pattern, new)(source), ASCEND_910B)


def test_sizes_whose_bytes_are_no_integers_of_32_bits_are_refused() -> None:
    kernel = kernelgen.compile(SAMPLES["open rows"](), "ascend")
    entry = SimulatedEntry(kernel.source, kernel.nest)
    huge = np.broadcast_to(np.float32(0), (1 << 21, 256))
    with pytest.raises(ArgumentError, match="2147483648 bytes"):
        entry((huge, huge), (1 << 21,))


S0, S1 = (Field("tiling", name) for name in ("s0", "s1"))


@pytest.mark.parametrize(("value", "least"), [(S0 * S1 * 64 - 1, 63), (S0 * S1 - S0, 0), (S0 * S1 - S0 * 2, None)])
def test_a_product_of_sizes_is_no_less_than_each_of_them(value: Expression, least: int | None) -> None:
    assert Bounds(1).lower(value) == least


def test_what_was_found_of_a_sum_counts_for_as_long_as_what_it_was_found_from() -> None:
    bounds = Bounds(1)
    bounds.count("k", Number(0), Number(10))
    turn = Name("k")
    assert bounds.upper(turn * 3 + 1) == 28
    with bounds.inside():
        bounds.suppose(Binary("<", turn, Number(4)))
        assert bounds.upper(turn * 3 + 1) == 10
        bounds.count("n", Number(0), Number(2))
        assert bounds.upper(Name("n") * 5) == 5
    bounds.count("n", Number(0), Number(7))
    assert (bounds.upper(turn * 3 + 1), bounds.upper(Name("n") * 5)) == (28, 30)
