"""The last vector of a loop writes nothing beside the array: every data type computed in a wider one, every processor."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.nest.nodes import Call, Compare, Expr, If, Load, LoopKind, Nest, Num, Store
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT32, INT8, INT16, INT32, INT64, UINT8, DType
from tests.support.hosts import HOSTS, needs_avx2, run_on
from tests.support.nests import I, block, buffer, call, loop, output

WIDENED = [(INT32, INT8), (INT32, UINT8), (INT64, INT16), (INT64, INT32), (FLOAT32, BFLOAT16)]
"""The data type of the elements that are read, and of those that are written."""


PROCESSORS = [
    pytest.param(detect_host(), id="this one"),
    *(pytest.param(host, id=name, marks=needs_avx2) for name, host in HOSTS.items()),
]


@pytest.fixture(params=PROCESSORS)
def host(request: pytest.FixtureRequest) -> Host:
    return request.param


def roomy(count: int, type_: DType) -> tuple[np.ndarray, np.ndarray]:
    """An array of zeros, and the larger one of ones that it lies in."""
    room = np.ones(count + 128, type_.numpy)
    room[64:-64] = 0
    return room[64:-64], room


def narrowed(source: DType, target: DType) -> Expr:
    x = Load(buffer("x", 256, dtype=source), (I,))
    return Call("cast", (x if source == FLOAT32 else call("neg", x),), target)


@pytest.mark.parametrize(("source", "target"), WIDENED, ids=str)
@pytest.mark.parametrize("count", [1, 2, 15, 17, 31, 33, 65, 97, 129, 193])
def test_one_element_that_is_left_over(host: Host, source: DType, target: DType, count: int) -> None:
    y, room = roomy(count, target)
    body = loop(I, count, Store(output("y", count, dtype=target), (I,), narrowed(source, target)), kind=LoopKind.VECTOR)
    nest = Nest("tail", (), (buffer("x", 256, dtype=source), output("y", count, dtype=target)), block(body))
    run_on(host, nest, np.ones(256, source.numpy), y)
    assert (np.concatenate([room[:64], room[-64:]]) == 1).all()


@pytest.mark.parametrize(("source", "target"), WIDENED, ids=str)
@pytest.mark.parametrize("extent", [16, 32, 40, 64])
def test_one_element_behind_a_guard(host: Host, source: DType, target: DType, extent: int) -> None:
    y, room = roomy(1, target)
    store = Store(output("y", 1, dtype=target), (I,), narrowed(source, target))
    body = loop(I, extent, If((Compare("<", I, Num(1)),), block(store)), kind=LoopKind.VECTOR)
    nest = Nest("guarded", (), (buffer("x", 256, dtype=source), output("y", 1, dtype=target)), block(body))
    run_on(host, nest, np.ones(256, source.numpy), y)
    assert (np.concatenate([room[:64], room[-64:]]) == 1).all()
