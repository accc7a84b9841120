"""Sums of products of bytes by words: exact on every processor, for every number of terms, and left alone elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hosts import HOSTS, needs_avx2, run_on
from nests import I, J, block, buffer, call, loop
from operator_kernels import one

from kernelgen.driver import compile
from kernelgen.nest.nodes import Accumulate, Call, Load, LoopKind, Nest, Space, Var
from kernelgen.nest.scalars import SCALARS
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import calls_of, statements
from kernelgen.targets import python
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import INT8, INT16, INT32, UINT8, DType
from kernelgen.transforms.cpu.byte_words import byte_words

K = Var("k")
EXTREMES = (np.array([0, 255, 1, 128, 255], np.uint8), np.array([-128, 127, -1, 0, -128], np.int8))
HERE = detect_host()
LACKING = Host(HERE.cpu, HERE.features - {"avx512vnni", "avxvnni"})
PROCESSORS = {**HOSTS, "this processor": HERE, "this one without the instruction": LACKING}


def product(terms: int, left: DType = UINT8, right: DType = INT8, rows: int = 2, columns: int = 21) -> Nest:
    """``y[i, j] += x[i, k] * w[k, j]`` with the columns innermost."""
    x, w = buffer("x", rows, terms, dtype=left), buffer("w", terms, columns, dtype=right)
    y = buffer("y", rows, columns, dtype=INT32, space=Space.INOUT)
    factors = (Call("cast", (Load(each, at),), INT32) for each, at in ((x, (I, K)), (w, (K, J))))
    inner = loop(J, columns, Accumulate(y, (I, J), "add", call("mul", *factors)))
    serial = LoopKind.SERIAL
    return Nest("bytes", (), (x, w, y), block(loop(I, rows, loop(K, terms, inner, kind=serial), kind=serial)))


def arrays(nest: Nest) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Operands, zeros, and what is to be there at the end; extreme numbers are frequent."""
    random, found = np.random.default_rng(0), list[np.ndarray]()
    for given, extremes in zip(nest.buffers, EXTREMES, strict=False):
        shape = tuple(dim for dim in given.shape if isinstance(dim, int))
        usual = random.integers(0, 256, shape).astype(extremes.dtype)
        found.append(np.where(random.random(shape) < 0.3, usual, random.choice(extremes, shape)))
    x, w = found
    expected = x.astype(np.int32) @ w.astype(np.int32)
    return x, w, np.zeros_like(expected), expected


def dots(nest: Nest) -> Iterator[Call]:
    return (each for part in statements(nest.body) for each in calls_of(part) if each.function == "byte_dot")


@pytest.mark.parametrize("terms", [4, 5, 7, 8, 31, 64])
def test_words_and_the_terms_beside_them_are_all_terms(terms: int) -> None:
    given = product(terms)
    made = byte_words(given)
    verify(made)
    x, w, y, expected = arrays(given)
    python.load(python.emit(made), made)((x, w, y), ())
    assert np.array_equal(y, expected)
    assert any(dots(made))


@needs_avx2
@pytest.mark.parametrize("columns", [1, 4, 8, 21, 64])
@pytest.mark.parametrize("host", PROCESSORS.values(), ids=PROCESSORS)
def test_processors_with_and_without_the_instruction_agree(host: Host, columns: int) -> None:
    made = byte_words(product(33, columns=columns))
    x, w, y, expected = arrays(made)
    run_on(host, made, x, w, y)
    assert np.array_equal(y, expected)


@pytest.mark.parametrize(
    ("left", "right", "terms"), [(INT8, INT8, 8), (UINT8, UINT8, 8), (INT16, INT8, 8), (UINT8, INT8, 3)]
)
def test_other_factors_and_few_terms_stay(left: DType, right: DType, terms: int) -> None:
    given = product(terms, left, right)
    assert byte_words(given) == given


def test_the_instruction_is_used_where_it_is() -> None:
    desc = one("MatMulInteger", [("uint8", (5, 36)), ("int8", (36, 64))], [("int32", (5, 64))])
    kernel = compile(desc, constants=[1])
    assert ("vpdpbusd" in kernel.source) == HERE.adds_byte_products(kernel.plan.cpu.unit.lanes)


def test_a_dot_of_words_is_that_of_their_bytes() -> None:
    u, s = np.array([0x01FF00FF], np.int32), np.array([0x7F80FF80 - 2**32], np.int64).astype(np.int32)
    assert SCALARS["byte_dot"].numpy(u, s) == 255 * -128 + 255 * -128 + 127
