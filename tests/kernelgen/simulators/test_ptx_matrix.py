"""Tensor-core instructions of every format, with fragments filled by loops over the ISA's own description."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelgen.simulators.ptx import run
from tests.support.cuda_runs import clean

RANDOM = np.random.default_rng(17)
NUMBERS: dict[str, tuple[Any, int]] = {  # how a number is stored, and how many share a register
    "f16": (np.float16, 2),
    "bf16": (ml_dtypes.bfloat16, 2),
    "tf32": (np.float32, 1),
    "s8": (np.int8, 4),
    "u8": (np.uint8, 4),
}


def kernel(opcode: str, registers: tuple[int, int, int]) -> str:
    """Loads register r of operand o from word 32 r + lane of buffer o, multiplies, stores the same way."""
    names = [
        [f"%{operand}{number}" for number in range(count)] for operand, count in zip("abc", registers, strict=True)
    ]
    lines = [f".reg .b32 %t, {', '.join(name for group in names for name in group)};", ".reg .b64 %o, %p;"]
    lines += ["mov.u32 %t, %tid.x;", "mul.wide.u32 %o, %t, 4;"]
    for operand, group in zip("abc", names, strict=True):
        lines += [f"ld.param.u64 %p, [{operand}];", "add.s64 %p, %p, %o;"]
        lines += [f"ld.global.b32 {name}, [%p+{128 * number}];" for number, name in enumerate(group)]
    a, b, c = ("{" + ", ".join(group) + "}" for group in names)
    lines += [f"{opcode} {c}, {a}, {b}, {c};"]
    lines += [f"st.global.b32 [%p+{128 * number}], {name};" for number, name in enumerate(names[2])]
    body = "\n".join([*lines, "ret;"])
    return f".version 8.0\n.target sm_80\n.entry k(.param .u64 a, .param .u64 b, .param .u64 c) {{\n{body}\n}}\n"


def random(kind: str, *shape: int) -> np.ndarray:
    if kind in ("s8", "u8"):
        return RANDOM.integers(-100 if kind == "s8" else 0, 100, shape).astype(NUMBERS[kind][0])
    values = RANDOM.standard_normal(shape).astype(NUMBERS[kind][0])
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if kind == "tf32" else values


def fragments(matrix: np.ndarray, per_register: int, of_a: bool) -> np.ndarray:
    """Words [register, lane]: A goes by rows lane / 4 and 8 below, B (given transposed) by columns lane / 4."""
    depth = matrix.shape[1]
    halves = 2 if of_a else 1
    words = []
    for start in range(0, depth, 4 * per_register):
        for half in range(halves):
            chosen = [
                matrix[lane // 4 + 8 * half, start + lane % 4 * per_register :][:per_register] for lane in range(32)
            ]
            words.append(np.ascontiguousarray(chosen).view(np.uint32).reshape(32))
    return np.stack(words)


@pytest.mark.parametrize(
    ("left", "right", "depth", "result"),
    [
        ("f16", "f16", 8, "f32"),
        ("f16", "f16", 16, "f32"),
        ("f16", "f16", 16, "f16"),
        ("bf16", "bf16", 8, "f32"),
        ("bf16", "bf16", 16, "f32"),
        ("tf32", "tf32", 4, "f32"),
        ("tf32", "tf32", 8, "f32"),
        ("s8", "s8", 16, "s32"),
        ("u8", "s8", 32, "s32"),
    ],
)
def test_products(left: str, right: str, depth: int, result: str) -> None:
    a, b = random(left, 16, depth), random(right, 8, depth)
    stored = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[result]
    c = (RANDOM.standard_normal((16, 8)) * 10).astype(stored)
    words = [fragments(a, NUMBERS[left][1], True), fragments(b, NUMBERS[right][1], False)]
    pairs = c.reshape(2, 8, 4, 2).transpose(0, 3, 1, 2).reshape(2, 2, 32)  # half, number in pair, lane
    if result == "f16":
        words.append(pairs.transpose(0, 2, 1).copy().view(np.uint32).reshape(2, 32))
    else:
        words.append(pairs.reshape(4, 32).copy().view(np.uint32))
    opcode = f"mma.sync.aligned.m16n8k{depth}.row.col.{result}.{left}.{right}.{result}"
    text = kernel(opcode, (len(words[0]), len(words[1]), len(words[2])))
    report = run(text, 1, 32, words)
    assert report.clean, report
    out = words[2].view(stored)
    out = out.reshape(2, 32, 2).transpose(0, 2, 1) if result == "f16" else out.reshape(2, 2, 32)
    got = out.reshape(2, 2, 8, 4).transpose(0, 2, 3, 1).reshape(16, 8)
    wide = a.astype(np.float64) @ b.T.astype(np.float64) + c.astype(np.float64)
    assert (got == wide.astype(stored)).all()
    assert report.counts.instructions["matrix"] == 1


def test_a_part_of_a_warp_cannot_multiply() -> None:
    text = kernel("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", (2, 1, 4))
    words = [np.zeros((count, 32), np.uint32) for count in (2, 1, 4)]
    assert run(text, 1, 24, words).kinds() == {"bad-shuffle"}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_loads_of_matrices(count: int, transposed: bool) -> None:
    outputs = ", ".join(f"%{number}" for number in range(count))
    constraints = ", ".join(f'"=r"(r[{number}])' for number in range(count))
    source = f"""
    extern "C" __global__ void k(const unsigned short* x, unsigned* y) {{
      __shared__ __align__(16) unsigned short line[256];
      for (int k = threadIdx.x; k < 256; k += 32) line[k] = x[k];
      __syncwarp();
      unsigned r[4], at = (unsigned)__cvta_generic_to_shared(line + threadIdx.x % {8 * count} * 8);
      asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{".trans" if transposed else ""}.shared.b16 {{{outputs}}}, [%{count}];"
        : {constraints} : "r"(at) : "memory");
      for (int k = 0; k < {count}; ++k) y[k * 32 + threadIdx.x] = r[k];
    }}"""
    x, y = np.arange(256, dtype=np.uint16).reshape(4, 8, 8), np.zeros((count, 32), np.uint32)
    clean(source, 1, 32, [x, y])
    expected = x[:count].swapaxes(1, 2) if transposed else x[:count]
    assert (y.view(np.uint16).reshape(count, 8, 8) == expected).all()
