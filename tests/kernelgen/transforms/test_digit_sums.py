"""One row times stored weights as integers: how far results are from those in float64, what rows hold, and what stays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hosts import HOSTS, needs_avx2, run_on
from operator_kernels import Given, one

from kernelgen.nest import index as ix
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import Accumulate, Literal, Nest, Prefetch, Space
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import calls_of, statements
from kernelgen.nest_stages import NEST_STAGES, run_checked
from kernelgen.plan import CpuPlan, Plan, VectorUnit
from kernelgen.stage_log import Trail
from kernelgen.stages import pipeline_named, to_raw_nest
from kernelgen.targets import python
from kernelgen.targets.cpu.loops.block_sizes import sizes_for
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import INT32
from kernelgen.transforms.common.initialize_reductions import initialize
from kernelgen.transforms.cpu import digit_sums as sums
from kernelgen.transforms.cpu import row_digits, stored_sums
from kernelgen.transforms.cpu.byte_words import BYTES
from kernelgen.transforms.cpu.digit_sums import digit_sums

HERE = detect_host()
LACKING = Host(HERE.cpu, HERE.features - {"avx512vnni", "avxvnni"})
PROCESSORS = {**HOSTS, "this processor": HERE, "this one without the instruction": LACKING}
HALF_UNIT = 2.0**-23 * 129 / 128
"""Of the greatest term of a piece, what each of its terms is wrong by at most."""

ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Sizes:
    """``terms`` of each group are stored: bytes, or half as many with two numbers of four ``bits`` in each."""

    bits: int = 4
    groups: int = 2
    terms: int = 32
    columns: int = 21
    with_zeros: bool = False
    rows: int = 1

    def stored(self) -> tuple[int, int, int]:
        """The shape of the weights."""
        return self.groups, self.terms * self.bits // 8, self.columns

    def nest(self) -> Nest:
        """The kernel as it comes of the schedule, with the weights as constants."""
        each: list[Given] = [("float32", (self.groups, self.columns))] * (1 + self.with_zeros)
        given: list[Given] = [
            ("float32", (self.rows, self.groups * self.terms)),
            ("uint8" if self.bits == 4 else "int8", self.stored()),
            *each,
        ]
        desc = one("StoredMatMul", given, [("float32", (self.rows, self.columns))], bits=self.bits * (self.bits == 4))
        constants = frozenset(range(1, len(given)))
        raw = to_raw_nest(
            desc, Plan(cpu=CpuPlan(unit=VectorUnit(adds_bytes=True))), pipeline_named("cpu"), Trail(), constants
        )[0]
        return initialize(raw)

    def weights(self) -> tuple[np.ndarray, ...]:
        """Stored numbers of all sizes, scales, perhaps zero points."""
        random = np.random.default_rng(0)
        stored = random.integers(-128, 128, self.stored()).astype(np.int8)
        each = [random.random((self.groups, self.columns)).astype(np.float32) + 0.5 for _ in range(1 + self.with_zeros)]
        return (stored.view(np.uint8) if self.bits == 4 else stored, *each)

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights as a matrix in float64, and what their numbers and zero points are together at most."""
        stored, scales, *zeros = (each.astype(np.float64) for each in self.weights())
        if self.bits == 4:
            stored = np.stack((stored % 16 - 8, stored // 16 - 8), axis=2).reshape(self.groups, -1, self.columns)
        less = zeros[0][:, None] if zeros else np.zeros(1)
        found = (stored - less) * scales[:, None], (np.abs(stored) + np.abs(less)) * scales[:, None]
        return found[0].reshape(-1, self.columns), found[1].reshape(-1, self.columns)


def row_of(kind: str, terms: int) -> np.ndarray:
    """One row of normal numbers, or what is made of them."""
    x = np.random.default_rng(1).standard_normal(terms).astype(np.float32)
    if kind == "outliers":
        x[[3, terms - 2]] *= np.float32(1e4)
    factors = {"tiny": 1e-42, "small": 1e-35, "large": 1e34, "zeros": 0.0}
    return x * np.float32(factors.get(kind, 1.0))


def bound(sizes: Sizes, x: np.ndarray) -> np.ndarray:
    """How far each result may be off: terms by half a unit, which is normal, sums by a rounding a piece and a few more."""
    _, most = sizes.numbers()
    length = min(sizes.terms, BYTES * sums.MOST_WORDS * 8 // sizes.bits)
    pieces = np.array([np.abs(x[at : at + length]).max() for at in range(0, len(x), length)], np.float64)
    unit = np.repeat(np.maximum(pieces * HALF_UNIT, 2.0**-126), length)[: len(x)]
    return unit @ most + (len(pieces) + 12) * ROUNDING * (np.abs(x.astype(np.float64)) @ most) + 2.0**-126


def results(sizes: Sizes, x: np.ndarray, made: Nest, host: Host | None = None) -> np.ndarray:
    """Of the nest on a ``host``, or of its meaning in Python."""
    y = np.zeros((1, sizes.columns), np.float32)
    spaces = [held for held in made.buffers if held.space is Space.WORKSPACE]
    shapes = [[dim for dim in held.shape if isinstance(dim, int)] for held in spaces]
    rooms = [np.zeros(shape, held.dtype.numpy) for shape, held in zip(shapes, spaces, strict=True)]
    arrays = (x[None], *sizes.weights(), y, *rooms)
    if host is not None:
        run_on(host, made, *arrays)
    else:
        python.load(python.emit(made), made)(arrays, ())
    return y[0]


def errors(sizes: Sizes, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By how much of what is allowed each result is off."""
    return np.abs(y - x.astype(np.float64) @ sizes.numbers()[0]) / bound(sizes, x)


def has_digits(made: Nest) -> bool:
    return any(each.function == "byte_dot" for part in statements(made.body) for each in calls_of(part))


ROWS = ["normal", "outliers", "tiny", "small", "large", "zeros"]
SIZES = [
    Sizes(4, 3, 16), Sizes(4, 2, 32, 21, True), Sizes(4, 1, 64, 16), Sizes(4, 2, 128, 5, True), Sizes(4, 1, 512, 33),
    Sizes(4, 2, 40, 7), Sizes(8, 1, 32), Sizes(8, 2, 32, 17, True), Sizes(8, 1, 300, 9), Sizes(8, 1, 257, 33, True),
]  # fmt: skip


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_results_are_those_of_floats(sizes: Sizes) -> None:
    made = digit_sums(sizes.nest(), True)
    verify(made)
    assert has_digits(made)
    for kind in ROWS:
        x = row_of(kind, sizes.groups * sizes.terms)
        assert errors(sizes, x, results(sizes, x, made)).max() <= 1, kind


@needs_avx2
@pytest.mark.parametrize("sizes", [SIZES[1], SIZES[8]], ids=str)
@pytest.mark.parametrize("host", PROCESSORS.values(), ids=PROCESSORS)
def test_all_processors_compute_it(sizes: Sizes, host: Host) -> None:
    made = digit_sums(sizes.nest(), True)
    for kind in ROWS:
        x = row_of(kind, sizes.groups * sizes.terms)
        assert errors(sizes, x, results(sizes, x, made, host)).max() <= 1, kind


@needs_avx2
@pytest.mark.parametrize("sizes", [SIZES[1], SIZES[6]], ids=str)
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_what_is_no_finite_number_makes_all_results_none(sizes: Sizes, number: float) -> None:
    made = digit_sums(sizes.nest(), True)
    for place in (0, sizes.terms - 1):
        x = row_of("normal", sizes.groups * sizes.terms)
        x[place] = number
        for host in (HERE, LACKING):
            assert np.isnan(results(sizes, x, made, host)).all()


@pytest.mark.parametrize("bits", [4, 8])
def test_numbers_of_few_bits_are_exact(bits: int) -> None:
    sizes = Sizes(bits, 1, 64, 16)
    x = np.random.default_rng(2).integers(-2048, 2048, 64).astype(np.float32)
    made = digit_sums(sizes.nest(), True)
    unscaled = sizes.numbers()[0] / sizes.weights()[1].astype(np.float64)
    expected = (x.astype(np.float64) @ np.rint(unscaled)).astype(np.float32) * sizes.weights()[1][0]
    assert np.array_equal(results(sizes, x, made), expected)


@pytest.mark.parametrize(
    "greatest", [1.0, 2.0, float(np.nextafter(np.float32(2), np.float32(0))), 1.985, 1.99, 2.0**100]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_digits_take_the_greatest_term_with_either_sign(greatest: float, sign: int) -> None:
    sizes = Sizes(8, 1, 32)
    x = row_of("normal", 32) * np.float32(greatest / 100)
    x[5] = sign * greatest
    assert errors(sizes, x, results(sizes, x, digit_sums(sizes.nest(), True))).max() <= 1


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_all_passes_take_what_it_makes(sizes: Sizes) -> None:
    nest, plan = sizes.nest(), Plan(cpu=CpuPlan(unit=VectorUnit(adds_bytes=True)))
    for stage in NEST_STAGES:
        nest = run_checked(stage, nest, plan)
        verify(nest)
    assert has_digits(nest)
    words = [held for held in nest.buffers if held.dtype == INT32]
    assert words
    assert all(held.name in nest.panels for held in words)


def test_the_digits_of_a_row_are_computed_once() -> None:
    made = digit_sums(Sizes(4, 2, 32, 300).nest(), True)
    filled = [part for part in statements(made.body) if isinstance(part, Accumulate) and part.function == "maximum"]
    assert len(filled) == 1


def test_wrong_digit_sums_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = SIZES[1]
    nest, x = sizes.nest(), row_of("normal", sizes.groups * sizes.terms)

    def worst() -> float:
        return errors(sizes, x, results(sizes, x, digit_sums(nest, True))).max()

    assert worst() <= 1
    joined = row_digits.joined
    with monkeypatch.context() as patch:
        patch.setattr(sums, "joined", lambda digits, unit: joined((digits[0], digits[2], digits[1]), unit))
        assert worst() > 1000
    with monkeypatch.context() as patch:
        patch.setattr(sums, "joined", lambda digits, unit: joined((*digits[:2], Literal(0, INT32)), unit))
        assert worst() > 1000
    with monkeypatch.context() as patch:
        patch.setattr(stored_sums.StoredSum, "middle", 7)
        assert worst() > 1000
    with monkeypatch.context() as patch:
        patch.setattr(sums, "LOW_NIBBLES", 0x1F1F1F1F)
        assert worst() > 1000
    with monkeypatch.context() as patch:
        patch.setattr(row_digits, "SPARE", 2.0**-3)
        assert worst() > 1000


@pytest.mark.parametrize(
    "nest",
    [
        Sizes(rows=3).nest(),
        Sizes(4, 3, 8).nest(),
        replace(Sizes().nest(), constants=frozenset()),
        replace(Sizes().nest(), constants=frozenset({"input_0"})),
    ],
    ids=["several rows", "few terms", "nothing is known early", "the row is"],
)
def test_other_sums_stay_as_they_are(nest: Nest) -> None:
    assert digit_sums(nest, True) == nest


def test_processors_without_the_instruction_keep_floats() -> None:
    nest = Sizes().nest()
    assert digit_sums(nest, False) is nest
    assert not sizes_for(LACKING).unit.adds_bytes


@pytest.mark.parametrize("ahead", [1024, 4096])
def test_words_are_asked_for_as_far_ahead_as_the_plan_says(ahead: int) -> None:
    """Counted from the word that the first turn reads: the four lines of 64 columns."""
    nest, plan = Sizes(bits=8, columns=64).nest(), Plan(CpuPlan(unit=VectorUnit(adds_bytes=True), ahead=ahead))
    for stage in NEST_STAGES:
        nest = run_checked(stage, nest, plan)
    hints = [part for part in statements(nest.body) if isinstance(part, Prefetch)]
    variables = frozenset[str]().union(*(ix.variables(hint.place) for hint in hints))
    places = [extent(hint.place, dict.fromkeys(variables, 0)) for hint in hints]
    assert [4 * place for place in places] == [ahead + 64 * line for line in range(4)]
