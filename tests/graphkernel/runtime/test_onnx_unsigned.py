"""What is int8 between a quantization and its inverse is uint8 there, and the numbers are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from graphkernel.runtime.onnxruntime.unsigned import unsigned
from tests.support.onnx_models import run_onnxruntime

X = np.concatenate([np.linspace(-20, 20, 501), [np.inf, -np.inf]]).astype(np.float32)
CONSTANTS = {
    "s": np.array(0.07, np.float32), "z": np.array(-3, np.int8), "low": np.array(-128, np.int8), "u": np.array(3, np.uint8),
    "ss": np.full(X.size, 0.5, np.float32), "zz": (np.arange(X.size) % 256 - 128).astype(np.int8),
}  # fmt: skip


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def results(nodes: Sequence[NodeProto], outputs: str, constants: dict[str, np.ndarray[Any, Any]]) -> list[Any]:
    known = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    graph = helper.make_graph(
        nodes, "net", infos, [helper.make_empty_tensor_value_info(each) for each in outputs.split()], known
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return run_onnxruntime(made, {"x": X})


def zero_points(nodes: Sequence[NodeProto], outputs: str) -> tuple[list[str], list[Any]]:
    """The data types of the zero points, and results that must be those of the nodes as they were."""
    constants = dict(CONSTANTS)
    found = unsigned(nodes, constants, set(outputs.split()))
    for got, expected in zip(results(found, outputs, constants), results(nodes, outputs, constants), strict=True):
        np.testing.assert_array_equal(got, expected)
    return [constants[each.input[2]].dtype.name for each in found if each.op_type.endswith("Linear")], found


@pytest.mark.parametrize("zero", ["z", "low"])
@pytest.mark.parametrize("readers", [1, 2])
def test_pairs_are_changed_whoever_reads_the_numbers(zero: str, readers: int) -> None:
    nodes = [node("QuantizeLinear", f"x s {zero}", "q")]
    nodes += [node("DequantizeLinear", f"q s {zero}", f"y{number}") for number in range(readers)]
    found, _ = zero_points(nodes, " ".join(f"y{number}" for number in range(readers)))
    assert found == ["uint8"] * (readers + 1)


def test_pairs_with_a_zero_point_for_each_row_are_changed() -> None:
    nodes = [node("QuantizeLinear", "x ss zz", "q", axis=0), node("DequantizeLinear", "q ss zz", "y", axis=0)]
    assert zero_points(nodes, "y")[0] == ["uint8", "uint8"]


@pytest.mark.parametrize(("nodes", "outputs"), [
    ([node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")], "y q"),
    ([node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y"), node("Neg", "q", "n")], "y n"),
    ([node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s low", "y")], "y"),
    ([node("QuantizeLinear", "x s u", "q"), node("DequantizeLinear", "q s u", "y")], "y"),
], ids=["the integers are a result", "somebody computes with them", "another zero point", "uint8 as it is"])  # fmt: skip
def test_other_integers_stay_what_they_are(nodes: list[NodeProto], outputs: str) -> None:
    found, after = zero_points(nodes, outputs)
    assert after == nodes
    assert len(found) == 2


def test_a_quantization_without_a_zero_point_stays() -> None:
    nodes = [node("QuantizeLinear", "x s", "q"), node("DequantizeLinear", "q s", "y")]
    assert unsigned(nodes, dict(CONSTANTS), {"y"}) == nodes
