"""Random float16 graphs around products at default flags for Ascend: simulated, right, and in no more launches than unfused."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import Shape

EXTENTS = st.sampled_from([1, 2, 5, 16, 17, 33, 48, 64])
BEHIND = ("bias", "residual", "scale", "relu", "gelu", "exp", "cast", "softmax", "sum", "heads", "slice", "product")


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """One or two products, what makes their operands, and up to four operators behind each."""
    batch = draw(st.sampled_from([(), (2,), (3, 2)]))
    m, k, n = (draw(EXTENTS) for _ in range(3))
    left_turned, right_turned = draw(st.booleans()), draw(st.booleans())
    before = draw(st.sampled_from(["", "cast", "scale", "heads"]))
    behind = draw(st.lists(st.sampled_from(BEHIND), max_size=4))

    def net(x: Tensor, w: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
        x = {"cast": lambda: ops.cast(x, "float16"), "scale": lambda: ops.mul(x, 0.5)}.get(before, lambda: x)()
        y = ops.batch_matmul if batch else ops.matmul
        result = y(x, w, transpose_a=left_turned, transpose_b=right_turned)
        for name in behind:
            result = _behind(name, result, bias, residual)
        return result

    left, right = ((k, m) if left_turned else (m, k)), ((n, k) if right_turned else (k, n))
    kinds = ("float32" if before == "cast" else "float16", "float16", "float16", "float16")
    shapes = ((*batch, *left), (*batch, *right), (n,), (*batch, m, n))
    return gk.trace(net, *[gk.spec(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)])


def _behind(name: str, y: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    match name:
        case "bias":
            return ops.add(y, ops.cast(bias, y.dtype.name)) if y.shape[-1] == bias.shape[0] else y
        case "residual":
            return ops.add(y, ops.cast(residual, y.dtype.name)) if y.shape == residual.shape else y
        case "scale":
            return ops.mul(y, 0.125)
        case "cast":
            return ops.cast(y, "float32" if y.dtype.name == "float16" else "float16")
        case "sum":
            return ops.reduce_sum(y, axis=(-1,), keep_dims=True)
        case "heads":
            return ops.reshape(y, (-1, y.shape[-1]))
        case "slice":
            return ops.slice(y, (0,) * len(y.shape), tuple((extent + 1) // 2 for extent in known(y.shape)))
        case "product":
            return ops.matmul(ops.tanh(y), y, transpose_b=True) if len(y.shape) == 2 else y
        case _:
            return {"relu": ops.relu, "gelu": ops.gelu, "exp": lambda t: ops.exp(ops.tanh(t)), "softmax": ops.softmax}[
                name
            ](y)


def known(shape: Shape) -> tuple[int, ...]:
    """A shape without symbols."""
    return tuple(extent for extent in shape if isinstance(extent, int))


def arrays_of(graph: Graph, seed: int) -> list[np.ndarray[Any, Any]]:
    """Small numbers of both signs, so that products stay where half precision is fine."""
    random = np.random.default_rng(seed)
    return [
        (random.standard_normal(known(value.type.shape)) * 0.3).astype(value.type.dtype.numpy) for value in graph.inputs
    ]


def launches(graph: Graph) -> int:
    """Nodes that are more than another view."""
    return sum(node.op.name != "Reshape" for node in graph.operators)


@given(graph=networks(), seed=st.integers(0, 99))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_products_at_default_flags(graph: Graph, seed: int) -> None:
    arrays = arrays_of(graph, seed)
    fused = gk.optimize(graph, target="ascend")
    plain = gk.optimize(graph, target="ascend", opt_level=0)
    assert launches(fused) <= launches(plain)
    executable = gk.compile(fused, target="ascend", opt_level=0)
    assert len(executable.report.kernels) == sum(node.body is not None for node in fused.operators)
    for got, want in zip(executable(*arrays), gk.compile(plain, target="cpu", opt_level=0)(*arrays), strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-2)


def test_sums_that_stay_on_a_core_are_compared_a_window_at_a_time() -> None:
    """A comparison takes whole repeats, more than the last window of the sums has."""
    shapes = ((2, 2, 16), (2, 16, 16))
    graph = gk.trace(lambda x, w: ops.gelu(ops.batch_matmul(x, w)), *[gk.spec(shape, "float16") for shape in shapes])
    arrays = arrays_of(graph, 0)
    (got,) = gk.compile(graph, target="ascend", opt_level=2)(*arrays)
    (want,) = gk.compile(graph, target="cpu", opt_level=0)(*arrays)
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-3)
