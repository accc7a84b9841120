"""Every declared expander means what its operator means: the same formula in float64, the same types everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from graphkernel.expanders.base import Declined, Expander, expand, expander
from graphkernel.expanders.lists import ANCESTOR, OURS, expand_ops
from graphkernel.ir.evaluate import evaluate
from graphkernel.ir.graph import Builder, Graph, Node
from graphkernel.ir.types import Attrs, TensorType, dtype, parse_dim
from graphkernel.ops import OPS, Tensor
from graphkernel.pipeline import builtin_catalogue

Dims = tuple[int | str, ...]
Sample = tuple[Sequence[Dims], dict[str, object]]
EXPANDERS = builtin_catalogue().expanders

X: Dims = ("N", 3, 4)
SAMPLES: dict[str, Sequence[Sample]] = {
    "AddN": [([X, X, X], {}), ([X], {})],
    "GeLUGrad": [([X, X], {}), ([X, X, X], {})],
    "Gelu": [([X], {"approximate": "none"}), ([X], {"approximate": "tanh"})],
    "LeakyReLU": [([X], {"alpha": 0.2})],
    "Elu": [([X], {"alpha": 0.7})],
    "Softmax": [([X], {"axis": (-1,)}), ([X], {"axis": (1, 2)})],
    "LogSoftmax": [([X], {"axis": (2,)}), ([X], {"axis": (1,)})],
    "ReduceMean": [([X], {"axis": (1, 2), "keep_dims": True}), ([(2, 3)], {"axis": ()})],
    "LayerNorm": [
        ([X, (4,), (4,)], {"begin_norm_axis": 2, "begin_params_axis": 2, "epsilon": 1e-5}),
        ([X, (3, 4), (3, 4)], {"begin_norm_axis": 1, "begin_params_axis": 1, "epsilon": 1e-2}),
    ],
    "RmsNorm": [([X, (4,)], {"epsilon": 1e-5}), ([X, (3, 4)], {})],
    "BatchNorm": [([("N", 3, 2, 4), (3,), (3,), (3,), (3,)], {"epsilon": 1e-3}), ([X, *[(3,)] * 4], {})],
    "BiasAdd": [([X, (3,)], {}), ([X, (4,)], {"data_format": "NHWC"}), ([("N", 3), (3,)], {})],
    "BiasAddGrad": [([X], {}), ([("N", 3, 2, 4)], {}), ([("N", 3, 2, 4)], {"data_format": "NHWC"})],
    "ExpandDims": [([X], {"axis": (0, 2)})],
    "Squeeze": [([("N", 1, 3, 1)], {"axis": (1,)}), ([("N", 1, 3, 1)], {})],
    "Flatten": [([X], {"axis": 1}), ([X], {"axis": 2})],
    "Tile": [([("N", 1, 3)], {"multiples": (1, 5, 1)}), ([(1, 3)], {"multiples": (2, 4, 1)})],
}


def samples(entry: Expander) -> Sequence[Sample]:
    """Operands and attributes to try; an operator of fixed arity without attributes needs no entry."""
    return SAMPLES.get(entry.name, [([X] * (OPS[entry.name].arity or 1), {})])


def both(entry: Expander, shapes: Sequence[Dims], attributes: dict[str, object], of: str) -> tuple[Graph, Graph]:
    builder = Builder()
    inputs = tuple(builder.parameter(f"x{i}", tensor_type(shape, of)) for i, shape in enumerate(shapes))
    node = builder.node(OPS[entry.name], inputs, Attrs.of(attributes))
    found = expand(entry, node, inputs, builder)
    assert not isinstance(found, Declined), f"{entry.name}: {found.reason}"
    return Graph("operator", inputs, node.outs), Graph("expansion", inputs, found)


def tensor_type(shape: Dims, of: str) -> TensorType:
    return TensorType(tuple(parse_dim(dim) for dim in shape), dtype(of))


def arrays_for(graph: Graph) -> list[np.ndarray]:
    """Mixed signs and magnitudes; positive where an operand must be (variances, results of roots)."""
    rng = np.random.default_rng(7)
    shapes = [tuple(2 if not isinstance(dim, int) else dim for dim in value.type.shape) for value in graph.inputs]
    positive = {"BatchNorm": {4}, "SqrtGrad": {0}, "RsqrtGrad": {0}}.get(graph.outputs[0].op.name, set())
    arrays = [rng.standard_normal(shape) * rng.choice([0.1, 1, 4], shape) for shape in shapes]
    return [
        (np.abs(array) + 0.25 if i in positive else array).astype(value.type.dtype.numpy)
        for i, (array, value) in enumerate(zip(arrays, graph.inputs, strict=True))
    ]


@pytest.fixture(params=EXPANDERS, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Expander:
    return request.param


@pytest.mark.parametrize(
    ("of", "tolerance"), [("float64", 1e-12), ("float32", 2e-6), ("float16", 2e-3), ("bfloat16", 2e-2)]
)
def test_same_numbers(entry: Expander, of: str, tolerance: float) -> None:
    for shapes, attributes in samples(entry):
        operator, expansion = both(entry, shapes, attributes, of)
        arrays = arrays_for(operator)
        for expected, got in zip(evaluate(operator, arrays), evaluate(expansion, arrays), strict=True):
            wide = expected.astype(np.float64)
            scale = max(1.0, float(np.abs(wide).max(initial=0)))
            np.testing.assert_allclose(got.astype(np.float64), wide, rtol=tolerance, atol=tolerance * scale)


def test_the_expansion_is_basic(entry: Expander) -> None:
    for shapes, attributes in samples(entry):
        _, expansion = both(entry, shapes, attributes, "float32")
        assert not [node.op.name for node in expansion.operators if node.op.composite]


def test_the_default_lists_name_every_expander() -> None:
    """An expander that no target uses by default is dead weight; the list of a target may name operators we lack."""
    for entry in EXPANDERS:
        assert any(entry.name in expand_ops(target) for target in ANCESTOR), entry.name
    assert {entry.name for entry in EXPANDERS} >= OURS


def test_a_wrong_formula_is_found() -> None:
    @expander("SiLU")
    def half(x: Tensor, *, attrs: Attrs) -> Tensor:
        return x * 0.5

    with pytest.raises(AssertionError):
        test_same_numbers(half, "float64", 1e-12)


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "reason"),
    [
        ("Tile", [(3,)], {"multiples": (2,)}, "not a broadcast"),
        ("ReduceMean", [("N", 2)], {"axis": (0,)}, "N, is not static"),
        ("LayerNorm", [(2, "N"), ("N",), ("N",)], {"begin_norm_axis": 1, "begin_params_axis": 1}, "not static"),
    ],
)
def test_declined(name: str, shapes: Sequence[Dims], attributes: dict[str, object], reason: str) -> None:
    builder = Builder()
    inputs = tuple(builder.parameter("x", tensor_type(shape, "float32")) for shape in shapes)
    node: Node = builder.node(OPS[name], inputs, Attrs.of(attributes))
    (entry,) = (entry for entry in EXPANDERS if entry.name == name)
    found = expand(entry, node, inputs, builder)
    assert isinstance(found, Declined)
    assert reason in found.reason
