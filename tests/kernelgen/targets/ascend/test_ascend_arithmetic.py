"""Vector instructions against numpy: masks, strides, reductions, casts, moves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.printer import print_kernel
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.simulators.ascendc import Report, simulate
from kernelgen.simulators.ascendc.vector.arithmetic import tree_sum
from kernelgen.simulators.ascendc.vector.rounding import cast
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, INT16, INT32, UINT8, UINT16, UINT32, DType
from tests.support.kernel_builder import KernelBuilder

SIZE = 4096


class Bench:
    """A kernel that copies arrays in, does some calls, and copies one array of bytes out."""

    def __init__(self, inputs: Mapping[str, tuple[np.ndarray, DType]], output: DType, initial: np.ndarray) -> None:
        self.kernel = KernelBuilder("bench", (*inputs, "before", "result"))
        self.arguments = {name: array for name, (array, _) in inputs.items()} | {"before": initial}
        self.tensors: dict[str, Tensor] = {}
        for at, (name, (array, dtype)) in enumerate([*inputs.items(), ("before", (initial, output))]):
            gm = self.kernel.global_tensor(f"{name}_gm", dtype, name, array.size)
            self.tensors[name] = self.kernel.local_tensor(f"{name}_ub", dtype, at * 16384, array.size)
            self.kernel.emit("DataCopy", dst=self.tensors[name], src=gm, count=array.size)
        self.kernel.barrier("ALL")
        self.output = output
        self.size = initial.size

    @property
    def dst(self) -> Tensor:
        return self.tensors["before"]

    def run(self) -> tuple[Report, np.ndarray]:
        self.kernel.barrier("ALL")
        gm = self.kernel.global_tensor("result_gm", self.output, "result", self.size)
        self.kernel.emit("DataCopy", dst=gm, src=self.dst, count=self.size)
        result = np.zeros(self.size, self.output.numpy)
        report = simulate(
            print_kernel(self.kernel.build()),
            {**self.arguments, "result": result},
            machine=ASCEND_910B,
            blocks=1,
            outputs=["result"],
        )
        return report, result


def values(dtype: DType, seed: int = 0, size: int = 2048) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype.is_integer:
        return random.integers(0, 100, size).astype(dtype.numpy)
    return random.standard_normal(size).astype(dtype.numpy)


def lanes(start: int, repeats: int, block: int, repeat: int, itemsize: int, chosen: np.ndarray) -> np.ndarray:
    """Element numbers of the lanes, one by one, in plain Python."""
    per_block = 32 // itemsize
    return np.array(
        [
            start + (r * repeat + lane // per_block * block) * per_block + lane % per_block
            for r in range(repeats)
            for lane in np.flatnonzero(chosen)
        ]
    )


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([FLOAT16, FLOAT32, INT16, INT32]),
    st.sampled_from(["Add", "Sub", "Mul", "Max", "Min"]),
    st.integers(1, 6),
    st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.integers(16, 18), st.integers(0, 18), st.integers(0, 18)),
    st.integers(0, 2**128 - 1),
)
def test_binary_with_mask_and_strides(dtype, operation, repeats, blocks, steps, bits) -> None:
    itemsize = dtype.itemsize
    chosen = np.array([bits >> lane & 1 for lane in range(256 // itemsize)], np.bool_)
    chosen[int(bits % chosen.size)] = True
    x, y, before = (values(dtype, seed) for seed in range(3))
    bench = Bench({"x": (x, dtype), "y": (y, dtype)}, dtype, before)
    low, high = (
        sum(int(one) << lane for lane, one in enumerate(chosen[half * 64 : half * 64 + 64])) for half in (0, 1)
    )
    mask = bench.kernel.mask_bits("mask", low, high)
    bench.kernel.emit(
        operation, dst=bench.dst, first=bench.tensors["x"], second=bench.tensors["y"], mask=mask, repeats=repeats,
        strides=(*blocks, *steps),
    )  # fmt: skip
    report, result = bench.run()
    at, first, second = (lanes(0, repeats, b, s, itemsize, chosen) for b, s in zip(blocks, steps, strict=True))
    expected = before.copy()
    table = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum}
    expected[at] = table[operation](x[first], y[second])
    assert report.clean, report
    np.testing.assert_array_equal(result, expected)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([FLOAT16, FLOAT32]), st.integers(1, 64), st.integers(1, 9), st.integers(1, 3), st.integers(8, 11)
)
def test_reduction_in_the_documented_order(dtype, mask, repeats, step, repeat) -> None:
    x, before = values(dtype), values(dtype, 1)
    bench = Bench({"x": (x, dtype)}, dtype, before)
    bench.kernel.emit(
        "WholeReduceSum", dst=bench.dst, src=bench.tensors["x"], mask=mask, repeats=repeats, dst_repeat=step,
        src_block=1, src_repeat=repeat,
    )  # fmt: skip
    report, result = bench.run()
    expected = before.copy()
    for r in range(repeats):
        row = x[r * repeat * 32 // dtype.itemsize :][:mask]
        width = 256 // dtype.itemsize
        expected[r * step] = tree_sum(np.concatenate((row, np.zeros(width - mask, dtype.numpy))))
    assert report.clean, report
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("operation", ["BlockReduceSum", "BlockReduceMax", "BlockReduceMin"])
def test_block_reduction(operation: str) -> None:
    x, before = values(FLOAT32), values(FLOAT32, 1)
    bench = Bench({"x": (x, FLOAT32)}, FLOAT32, before)
    bench.kernel.emit(
        operation, dst=bench.dst, src=bench.tensors["x"], repeats=4, mask=64, dst_repeat=1, src_block=1, src_repeat=8
    )
    report, result = bench.run()
    rows = x[:256].reshape(32, 8)
    expected = {"Sum": tree_sum(rows), "Max": rows.max(1), "Min": rows.min(1)}[operation.removeprefix("BlockReduce")]
    assert report.clean, report
    np.testing.assert_array_equal(result[:32], expected)


def test_gather_takes_bytes() -> None:
    x, before = values(FLOAT16), values(FLOAT16, 1)
    offsets = np.random.default_rng(2).integers(0, 1000, 256).astype(np.uint32) * 2
    bench = Bench({"x": (x, FLOAT16), "at": (offsets, UINT32)}, FLOAT16, before)
    bench.kernel.emit("Gather", dst=bench.dst, src=bench.tensors["x"], offsets=bench.tensors["at"], base=64, count=200)
    report, result = bench.run()
    assert report.clean, report
    np.testing.assert_array_equal(result[:200], x[offsets[:200] // 2 + 32])
    np.testing.assert_array_equal(result[200:], before[200:])


@pytest.mark.parametrize(("offset", "kind"), [(4096, "out-of-bounds"), (3, "misaligned")])
def test_gather_of_a_wrong_offset(offset: int, kind: str) -> None:
    bench = Bench(
        {"x": (values(FLOAT16), FLOAT16), "at": (np.full(16, offset, np.uint32), UINT32)}, FLOAT16, values(FLOAT16)
    )
    bench.kernel.emit("Gather", dst=bench.dst, src=bench.tensors["x"], offsets=bench.tensors["at"], base=0, count=16)
    assert bench.run()[0].kinds() == {kind}


def test_transpose_and_duplicate() -> None:
    x, before = values(UINT16), values(UINT16, 1)
    bench = Bench({"x": (x, UINT16)}, UINT16, before)
    bench.kernel.emit("Transpose", dst=bench.dst, src=bench.tensors["x"])
    bench.kernel.emit("Duplicate", dst=bench.dst[256], scalar=7, mask=16, repeats=2, dst_block=1, dst_repeat=8)
    report, result = bench.run()
    assert report.clean, report
    np.testing.assert_array_equal(result[:256].reshape(16, 16), x[:256].reshape(16, 16).T)
    expected = before[256:].copy()
    expected[:16] = expected[128:144] = 7
    np.testing.assert_array_equal(result[256:], expected)


NUMBERS = np.array([0.0, -0.0, 1.5, 2.5, -1.5, -2.5, 0.4999, 65519.0, 65520.0, 1e-7, -1e-7, 3.00024, np.inf, -np.inf])


@pytest.mark.parametrize(
    ("mode", "function"),
    [("CAST_RINT", np.rint), ("CAST_FLOOR", np.floor), ("CAST_CEIL", np.ceil), ("CAST_TRUNC", np.trunc)],
)
def test_cast_to_integers_saturates(mode: str, function) -> None:
    x = NUMBERS.astype(np.float32)
    expected = np.clip(function(x), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(cast(x, INT8, mode), expected)
    assert cast(np.array([np.nan], np.float32), INT32, mode)[0] == 0
    assert cast(np.array([-1.0], np.float32), UINT8, mode)[0] == 0


def test_cast_rounds_half_away() -> None:
    np.testing.assert_array_equal(
        cast(np.array([0.5, 1.5, -0.5, -2.5], np.float32), INT32, "CAST_ROUND"), [1, 2, -1, -3]
    )


@settings(max_examples=200, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from([FLOAT16, BFLOAT16]))
def test_cast_to_narrow_floats_takes_the_right_neighbour(value: float, to: DType) -> None:
    x = np.array([value], np.float32)
    limit = 60000.0 if to is FLOAT16 else 3e38
    if abs(value) > limit:
        return
    low, high, zero, near, away = (
        float(cast(x, to, f"CAST_{mode}")[0]) for mode in ("FLOOR", "CEIL", "TRUNC", "RINT", "ROUND")
    )
    assert low <= value <= high
    assert zero == (low if value > 0 else high)
    assert {near, away} <= {low, high}
    assert abs(near - value) == min(value - low, high - value)
    if low != value:
        between = float(cast(np.array([(low + high) / 2], np.float64), to, "CAST_RINT")[0])
        assert between in (low, high)
