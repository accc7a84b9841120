"""A model that ONNX does not allow is refused with the place; nothing that a file can ask for is computed without bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, defs, helper, numpy_helper
from onnx_models import model
from onnxruntime import InferenceSession

from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.importer import import_onnx, load_onnx
from kernelgen.system.limits import LIMITS

X = {"x": np.ones((2, 3), np.float32)}
RELU = helper.make_node("Relu", ["x"], ["y"])


def operators_with_attributes() -> list[tuple[str, str]]:
    """Every operator of the newest opset with each of its attributes."""
    schemas = [schema for schema in defs.get_all_schemas() if schema.domain == "" and not schema.deprecated]
    return sorted((schema.name, name) for schema in schemas for name in schema.attributes)


@pytest.mark.parametrize(("operator", "name"), operators_with_attributes())
def test_an_attribute_of_another_type_is_refused(operator: str, name: str) -> None:
    schema = defs.get_schema(operator)
    node = NodeProto(op_type=operator, name="culprit", input=["x"] * schema.min_input)
    node.output.extend(["y", *(f"y{k}" for k in range(1, schema.min_output))])
    is_number = schema.attributes[name].type == defs.OpSchema.AttrType.INT
    node.attribute.append(helper.make_attribute(name, 1.5 if is_number else 1))
    with pytest.raises(FrontendError, match=r"node 0 .*culprit"):
        import_onnx(model([node], X, opset=defs.onnx_opset_version()))


def broken(change: Callable[[ModelProto], object]) -> ModelProto:
    """A model of one Relu after a change."""
    made = model([RELU], X)
    change(made)
    return made


def dims(of: ModelProto) -> Any:
    """The extents of the input."""
    return of.graph.input[0].type.tensor_type.shape.dim


def tensor(data_type: int, dims: list[int], raw: bytes) -> TensorProto:
    """A weight."""
    return TensorProto(name="w", data_type=data_type, dims=dims, raw_data=raw)


@pytest.mark.parametrize(("change", "said"), [
    (lambda m: m.Clear(), "the file is empty"),
    (lambda m: m.ClearField("graph"), "without a graph"),
    (lambda m: m.graph.input.extend([*m.graph.input]), "input 'x' is there twice"),
    (lambda m: m.graph.node.extend([*m.graph.node]), "node 1 Relu -> y: there is a value y before it"),
    (lambda m: m.graph.node.add(op_type="Relu", input=["x"]), "node 1 Relu .*output size 0"),
    (lambda m: m.graph.node[0].input.extend("xx"), "node 0 Relu -> y: .*input size 3"),
    (lambda m: m.graph.initializer.extend([tensor(1, [4], b"1234")]), "w"),
    (lambda m: m.graph.initializer.extend([tensor(1, [1024], b"1234" * 300)]), "initializer w"),
    (lambda m: m.graph.initializer.extend([tensor(999, [1], b"1234")]), "initializer w: data type 999"),
    (lambda m: m.graph.initializer.extend([tensor(1, [-4], b"1234" * 4)]), "Negative dimension"),
    (lambda m: m.graph.initializer.extend([tensor(1, [2**40, 2**40], b"")]), "overflow"),
    (lambda m: dims(m)[0].__setattr__("dim_value", -2), "input x, axis 0: .* negative"),
    (lambda m: m.graph.input[0].type.tensor_type.__setattr__("elem_type", 999), "input x: data type 999"),
    (lambda m: dims(m).extend([*dims(m)] * 20), "dims"),
    (lambda m: dims(m)[0].__setattr__("dim_param", "*".join("N" * 70)), "input x"),
    *((lambda m, v=v: m.opset_import[0].__setattr__("version", v), f"opset {v}") for v in (0, -5, 10_000, 2**60)),
    (lambda m: m.opset_import.add(domain="ai.onnx", version=7), "is there twice"),
    (lambda m: m.__setattr__("ir_version", 10**6), "ir_version 1000000"),
])  # fmt: skip
def test_what_onnx_does_not_allow_is_refused(change: Callable[[ModelProto], object], said: str) -> None:
    with pytest.raises(FrontendError, match=said):
        import_onnx(broken(change))


def test_an_opset_may_be_there_twice_where_both_say_the_same() -> None:
    made = broken(lambda m: m.opset_import.add(domain="ai.onnx", version=m.opset_import[0].version))
    assert InferenceSession(made.SerializeToString()).get_outputs()
    assert [node.op.name for node in import_onnx(made).operators] == ["ReLU"]


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    content = model([RELU], X).SerializeToString()
    for old, new in ((b"Relu", b"Re\xff\xfe"), (b"\x01x", b"\x01\xff"), (b"\x03net", b"\x03n\xfft")):
        with pytest.raises(FrontendError):
            import_onnx(ModelProto.FromString(content.replace(old, new)))
        place = tmp_path / "broken.onnx"
        place.write_bytes(content.replace(old, new))
        with pytest.raises(FrontendError):
            load_onnx(place)


def test_a_result_with_a_negative_extent_is_refused() -> None:
    nodes = [helper.make_node("Tile", ["x", "n"], ["y"])]
    with pytest.raises(FrontendError, match="node 0 Tile -> y"):
        import_onnx(model(nodes, X, constants={"n": ints(*(-3 for _ in X["x"].shape))}))


def test_a_model_without_name_and_output_types_is_read() -> None:
    def change(made: ModelProto) -> None:
        made.graph.name = ""
        made.graph.output[0].ClearField("type")

    assert import_onnx(broken(change)).name == "main"


# ---------------------------------------------------------------- what is computed


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def grown(*nodes: NodeProto, **constants: np.ndarray) -> ModelProto:
    """A model that computes from constants alone."""
    return model([*nodes, helper.make_node("Add", ["x", "x"], ["y"])], X, ("y", "big"), constants)


BIG, LONG = (1 << 18, 1 << 18), 1 << 14


@pytest.mark.parametrize("built", [
    grown(helper.make_node("Expand", ["c", "s"], ["big"]), c=np.ones(1, np.float32), s=ints(*BIG)),
    grown(helper.make_node("Tile", ["c", "s"], ["big"]), c=np.ones((2, 2), np.float32), s=ints(*BIG)),
    grown(helper.make_node("ConstantOfShape", ["s"], ["big"]), s=ints(*BIG)),
    grown(helper.make_node("Pad", ["c", "s"], ["big"]), c=np.ones((1, 1), np.float32), s=ints(0, 0, *BIG)),
    grown(helper.make_node("Range", ["a", "b", "d"], ["big"]), a=ints(0)[0], b=ints(2**40)[0], d=ints(1)[0]),
    grown(helper.make_node("Add", ["r", "c"], ["big"]), r=np.ones((1, LONG), np.float32), c=np.ones((LONG, 1), np.float32)),
    grown(helper.make_node("MatMul", ["c", "r"], ["big"]), r=np.ones((1, LONG), np.float32), c=np.ones((LONG, 1), np.float32)),
], ids=["Expand", "Tile", "ConstantOfShape", "Pad", "Range", "Add", "MatMul"])  # fmt: skip
def test_large_results_of_small_constants_stay_operators(built: ModelProto) -> None:
    graph = import_onnx(built)
    assert all(node.data is None or node.data.array is None or node.data.array.size < 1 << 17 for node in graph.nodes)
    assert any(isinstance(v.type.size, int) and v.type.size > LIMITS.constant_elements for v in graph.outputs)


def test_a_range_without_end_is_refused() -> None:
    built = grown(helper.make_node("Range", ["a", "b", "d"], ["big"]), a=ints(0)[0], b=ints(9)[0], d=ints(0)[0])
    with pytest.raises(FrontendError, match="node 0 Range -> big: a range from 0 to 9 in steps of 0"):
        import_onnx(built)


def test_many_large_results_stop_being_computed() -> None:
    constants = {"c0": np.ones(1 << 22, np.float32)}
    nodes = [helper.make_node("Neg", [f"c{k}"], [f"c{k + 1}"]) for k in range(40)]
    nodes.append(helper.make_node("ReduceSum", ["c40"], ["big"], keepdims=0))
    graph = import_onnx(grown(*nodes, **constants))
    negations = [node for node in graph.operators if node.op.name == "Neg"]
    assert 0 < len(negations) < 40, "some were computed, others stayed"


@pytest.mark.parametrize("operator", ["Mul", "Add"])
def test_a_symbol_that_is_doubled_again_and_again_is_no_shape(operator: str) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node(operator, [f"s{k}", f"s{k}"], [f"s{k + 1}"]) for k in range(200)]
    graph = import_onnx(model([*nodes, helper.make_node("Identity", ["s200"], ["y"])], X, shapes={"x": ("N", "M")}))
    assert len(graph.nodes) <= 202


def test_a_shape_that_is_joined_with_itself_again_and_again_is_no_shape() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Concat", [f"s{k}", f"s{k}"], [f"s{k + 1}"], axis=0) for k in range(35)]
    graph = import_onnx(model([*nodes, helper.make_node("Identity", ["s35"], ["y"])], X, shapes={"x": ("N", "M")}))
    assert graph.outputs[0].type.shape == (2**36,)
    numbers = numpy_helper.from_array(ints(2, 3), "s0")
    known = model([*nodes[1:], helper.make_node("Identity", ["s35"], ["y"])], X)
    known.graph.initializer.append(numbers)
    assert import_onnx(known).outputs[0].type.shape == (2**36,)
