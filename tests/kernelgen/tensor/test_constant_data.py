"""Derived constants are made when they are first read, and otherwise are constants like any other."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphkernel
from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.errors import VerifyError
from kernelgen.tensor.constant_data import ConstantData, Derivation
from kernelgen.tensor.graph import Builder, Graph, Value
from kernelgen.tensor.types import TensorType, dtype
from kernelgen.tensor.verify import verify

WEIGHTS = np.arange(24, dtype=np.float32).reshape(4, 6)
TURNED = TensorType((6, 4), dtype("float32"))


def turned(weights: np.ndarray) -> np.ndarray:
    return weights.T


def never(weights: np.ndarray) -> np.ndarray:
    raise AssertionError("nobody reads it")


def data_of(value: Value) -> ConstantData:
    assert value.node.data is not None
    return value.node.data


def test_content_is_made_once_and_is_read_only() -> None:
    builder = Builder()
    value = builder.derived(turned, builder.constant(WEIGHTS), of=TURNED)
    found = value.constant
    assert found is not None
    assert found is value.constant
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, WEIGHTS.T)


def test_what_is_asked_of_types_makes_nothing() -> None:
    builder = Builder()
    value = builder.derived(never, builder.constant(WEIGHTS), of=TURNED)
    graph = Graph("held", (), (builder.emit(ops.OPS["Neg"], value),))
    assert value.is_known
    assert data_of(value).nbytes == WEIGHTS.nbytes
    verify(graph)


def test_a_graph_is_that_of_the_content() -> None:
    def negated(builder: Builder, value: Value) -> Graph:
        return Graph("held", (), (builder.emit(ops.OPS["Neg"], value),))

    one, other = Builder(), Builder()
    value = one.derived(turned, one.constant(WEIGHTS), of=TURNED)
    derived = negated(one, value)
    assert derived == negated(other, other.constant(WEIGHTS.T))
    assert f"sha256:{ConstantData.of(WEIGHTS.T).digest}" in str(derived)


def test_what_is_derived_alike_is_one_constant() -> None:
    builder = Builder(intern=True)
    one, other = (builder.derived(turned, builder.constant(WEIGHTS.copy()), of=TURNED) for _ in range(2))
    assert one == other
    assert data_of(one) == ConstantData(None, None, Derivation(turned, (ConstantData.of(WEIGHTS),), TURNED))
    assert data_of(one) != ConstantData(None, None, Derivation(never, (ConstantData.of(WEIGHTS),), TURNED))


def test_another_type_than_promised_is_refused() -> None:
    builder = Builder()
    value = builder.derived(np.negative, builder.constant(WEIGHTS), of=TURNED)
    with pytest.raises(VerifyError, match="derived where f32"):
        _ = value.constant


def test_a_pickle_holds_the_content() -> None:
    data = ConstantData(None, None, Derivation(turned, (ConstantData.of(WEIGHTS),), TURNED))
    found = pickle.loads(pickle.dumps(data))
    assert found.digest == data.digest
    np.testing.assert_array_equal(found.array, WEIGHTS.T)


def test_optimizing_lays_out_no_weights_of_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Derivation] = []
    whole = Derivation.made

    def counted(self: Derivation) -> np.ndarray:
        made.append(self)
        return whole(self)

    monkeypatch.setattr(Derivation, "made", counted)
    weights = np.random.default_rng(0).standard_normal((64, 64, 3, 3), np.float32)

    def network(x: Tensor) -> Tensor:
        return ops.relu(ops.conv2d(ops.relu(ops.conv2d(x, weights, pad=1)), weights, pad=1))

    graph = graphkernel.trace(network, graphkernel.spec((1, 64, 28, 28)))
    fused = graphkernel.optimize(graph)
    assert not made
    assert str(fused)
    assert made, "the text names them by their digests"
