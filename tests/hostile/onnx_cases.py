"""ONNX models: not valid, too much, or with names that mean to be more than names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, helper

import graphkernel as gk
from tests.hostile.case import FINE, Case, files, special_files
from tests.support.onnx_models import model

DOOR = "ONNX model"
X = {"x": np.ones((2, 3), np.float32)}
Change = Callable[[ModelProto], object]


def node(operator: str, *operands: str, result: str = "y", **attributes: Any) -> NodeProto:
    """A node with one result."""
    return helper.make_node(operator, operands, [result], **attributes)


def net(*nodes: NodeProto, outputs: tuple[str, ...] = ("y",), opset: int = 17, **constants: np.ndarray) -> bytes:
    """A model over x of float32 [2, 3]."""
    return model(nodes or [node("Relu", "x")], X, outputs, constants, opset).SerializeToString()


def changed(change: Change) -> bytes:
    """A model of one Relu after a change."""
    made = ModelProto.FromString(net())
    change(made)
    return made.SerializeToString()


def weight(data_type: int, dims: list[int], raw: bytes) -> Change:
    """Adds a constant."""
    return lambda m: m.graph.initializer.append(TensorProto(name="w", data_type=data_type, dims=dims, raw_data=raw))


def extents(m: ModelProto) -> Any:
    """The extents of the input."""
    return m.graph.input[0].type.tensor_type.shape.dim


def dim(**content: Any) -> Change:
    """Changes the first extent of the input."""

    def change(m: ModelProto) -> None:
        for name, value in content.items():
            setattr(extents(m)[0], name, value)

    return change


def opset(version: int) -> Change:
    """Another opset."""
    return lambda m: setattr(m.opset_import[0], "version", version)


def outside(**entries: str) -> Change:
    """A weight whose content lies elsewhere."""

    def change(m: ModelProto) -> None:
        tensor = m.graph.initializer.add(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)

    return change


def nested(depth: int) -> GraphProto:
    """A body in a body in a body."""
    body = helper.make_graph([], "b", [], [])
    for _ in range(depth):
        body = helper.make_graph([node("If", "x", then_branch=body, else_branch=body)], "b", [], [])
    return body


def ints(*values: int) -> np.ndarray:
    """A shape."""
    return np.array(values, np.int64)


def doubled(operator: str, times: int, **attributes: Any) -> tuple[NodeProto, ...]:
    """A value applied to itself again and again."""
    nodes = [node(operator, f"s{k}", f"s{k}", result=f"s{k + 1}", **attributes) for k in range(times)]
    return *nodes, node("Identity", f"s{times}")


NOT_VALID: Mapping[str, bytes] = {
    "an empty file": b"",
    "bytes at random": bytes(range(256)) * 40,
    "text in place of a model": b"import os",
    "cut in the middle": net()[:40],
    "cut at the end": net()[:-20],
    "no graph": changed(lambda m: m.ClearField("graph")),
    "a version of the format that is not there": changed(lambda m: setattr(m, "ir_version", 10**6)),
    "no opset": changed(lambda m: m.ClearField("opset_import")),
    **{f"opset {version}": changed(opset(version)) for version in (0, -5, 99, 2**60, -(2**63))},
    "two opsets of one domain": changed(lambda m: m.opset_import.add(domain="", version=7)),
    "two opsets under both names": changed(lambda m: m.opset_import.add(domain="ai.onnx", version=7)),
    "two inputs of one name": changed(lambda m: m.graph.input.extend([*m.graph.input])),
    "an input without type": changed(lambda m: m.graph.input[0].ClearField("type")),
    "an input that is a sequence": changed(lambda m: m.graph.input[0].type.sequence_type.elem_type.tensor_type.SetInParent()),
    "an input of data type 999": changed(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 999)),
    "an input of data type 0": changed(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 0)),
    "an extent of -2": changed(dim(dim_value=-2)),
    "40 dims": changed(lambda m: extents(m).extend([*extents(m)] * 20)),
    "an extent of 100 factors": changed(dim(dim_param="*".join(["N"] * 100))),
    "an extent of 10,000 summands": changed(dim(dim_param="+".join(f"N{k}" for k in range(10_000)))),
    "two nodes make one value": changed(lambda m: m.graph.node.extend([*m.graph.node])),
    "a node makes the input": net(node("Relu", "x", result="x"), outputs=("x",)),
    "a node without results": changed(lambda m: m.graph.node.add(op_type="Relu", input=["x"])),
    "a node without operator": changed(lambda m: m.graph.node[0].ClearField("op_type")),
    "a node with too many operands": net(node("Relu", "x", "x", "x")),
    "a node with too few operands": net(node("Add", "x")),
    "an operand that is not there": net(node("Add", "x", "nobody")),
    "a circle of nodes": net(node("Relu", "b", result="a"), node("Relu", "a", result="b"), node("Add", "a", "b")),
    "an output that is not there": net(outputs=("nobody",)),
    "an unknown operator": net(node("Frobnicate", "x")),
    "an unknown domain": net(helper.make_node("Frobnicate", ["x"], ["y"], domain="evil")),
    "an attribute of another type": net(node("Transpose", "x", perm=1.5)),
    "an attribute that is not known": net(node("Relu", "x", evil=1)),
    "an attribute twice": changed(lambda m: m.graph.node[0].attribute.extend([helper.make_attribute("a", 1)] * 2)),
    "an attribute without type": changed(lambda m: m.graph.node[0].attribute.add(name="axis", i=1)),
    "an axis out of range": net(node("Softmax", "x", axis=7)),
    "a permutation that is none": net(node("Transpose", "x", perm=[0, 0])),
    "a weight shorter than its shape": changed(weight(1, [4], b"1234")),
    "a weight longer than its shape": changed(weight(1, [1], b"1234" * 999)),
    "a large weight shorter than its shape": changed(weight(1, [1 << 20], b"1234" * 1000)),
    "a weight of data type 999": changed(weight(999, [1], b"1234")),
    "a weight of strings": changed(weight(TensorProto.STRING, [1], b"")),
    "a weight with an extent of -4": changed(weight(1, [-4], b"1234" * 4)),
    "a weight of 2**80 elements": changed(weight(1, [2**40, 2**40], b"")),
    "a weight of 2**62 elements": changed(weight(1, [2**62], b"1234")),
    "two weights of one name": changed(lambda m: (weight(1, [1], b"1234")(m), weight(1, [1], b"1234")(m))),
    "a sparse weight": changed(lambda m: m.graph.sparse_initializer.append(SparseTensorProto(dims=[4]))),
    "a body in a body, 8 deep": net(node("If", "x", then_branch=nested(8), else_branch=nested(1))),
    "an operator that is no text": net().replace(b"Relu", b"Re\xff\xfe"),
    "a value name that is no text": net().replace(b"\x01x", b"\x01\xff"),
    "a graph name that is no text": net().replace(b"\x03net", b"\x03n\xfft"),
    "weights in /etc/passwd": changed(outside(location="/etc/passwd")),
    "weights above the folder": changed(outside(location="../../../../etc/passwd")),
    "weights in a file that is not there": changed(outside(location="nothing.bin")),
    "weights in a device": changed(outside(location="/dev/zero")),
    "weights in this very model, too short": changed(outside(location="input.onnx", offset="60", length="8")),
    "weights at offset -5": changed(outside(location="input.onnx", offset="-5")),
    "weights at an offset that is no number": changed(outside(location="input.onnx", offset="evil")),
    "weights without location": changed(outside(offset="0")),
    "a range in steps of 0": net(node("Range", "a", "b", "z"), a=ints(0)[0], b=ints(9)[0], z=ints(0)[0]),
    "a range to infinity": net(
        node("Range", "a", "b", "z"), a=np.array(0.0), b=np.array(np.inf), z=np.array(1.0)
    ),
    "a reshape to a shape of NaN": net(node("Reshape", "x", "s"), s=np.array([np.nan], np.float32)),
    "a reshape to two unknown extents": net(node("Reshape", "x", "s"), s=ints(-1, -1)),
    "a reshape to other elements": net(node("Reshape", "x", "s"), s=ints(7)),
    "a tile by negative numbers": net(node("Tile", "x", "s"), s=ints(-1, 2)),
    "an expansion to negative extents": net(node("Expand", "x", "s"), s=ints(-7, 3)),
    "a split into parts that do not fit": net(node("Split", "x", "s"), s=ints(7, 9)),
    "a convolution in steps of 0": model(
        [node("Conv", "x", "w", strides=[0, 0])], {"x": np.ones((1, 1, 8, 8), np.float32)},
        constants={"w": np.ones((1, 1, 3, 3), np.float32)},
    ).SerializeToString(),
    "a pool of window 0": model(
        [node("MaxPool", "x", kernel_shape=[0, 0])], {"x": np.ones((1, 1, 8, 8), np.float32)}
    ).SerializeToString(),
}  # fmt: skip

UNSAID: Mapping[str, bytes] = {
    "no version of the format": changed(lambda m: m.ClearField("ir_version")),
    "an input without shape": changed(lambda m: m.graph.input[0].type.tensor_type.ClearField("shape")),
    "an extent that is no name": changed(dim(dim_param="")),
    "functions of its own": changed(lambda m: m.functions.add(name="f", domain="d")),
}

BIG = ints(1 << 20, 1 << 20)
ONE = np.ones((1, 1), np.float32)
MUCH: Mapping[str, bytes] = {
    "an expansion to 4 TiB": net(node("Expand", "c", "s"), c=ONE, s=BIG),
    "an expansion to 64 dims": net(node("Expand", "c", "s"), c=ONE, s=ints(*[1] * 30, 2, 3)),
    "a tile to 4 TiB": net(node("Tile", "c", "s"), c=ONE, s=BIG),
    "a constant of 4 TiB": net(node("ConstantOfShape", "s"), s=BIG),
    "a pad to 4 TiB": net(node("Pad", "c", "s"), c=ONE, s=ints(0, 0, 1 << 20, 1 << 20)),
    "a range of 8 TiB": net(node("Range", "a", "b", "d"), a=ints(0)[0], b=ints(1 << 40)[0], d=ints(1)[0]),
    "a product of 1 GiB from 128 KiB": net(
        node("MatMul", "c", "r"), c=np.ones((1 << 14, 1), np.float32), r=np.ones((1, 1 << 14), np.float32)
    ),
    "a sum of 1 GiB from 128 KiB": net(
        node("Add", "c", "r"), c=np.ones((1 << 14, 1), np.float32), r=np.ones((1, 1 << 14), np.float32)
    ),
    "a gather of 1 GiB from 128 KiB": net(
        node("Gather", "c", "i"), c=np.ones((2, 1 << 13), np.float32), i=np.zeros(1 << 15, np.int64)
    ),
    "a constant joined with itself 40 times": net(*doubled("Concat", 40, axis=0), s0=np.ones(2, np.float32)),
    "a number multiplied with itself 200 times": net(*doubled("Mul", 200), s0=ints(3)),
    "a symbol multiplied with itself 200 times": model(
        [node("Shape", "x", result="s0"), *doubled("Mul", 200)], X, shapes={"x": ("N", "M")}
    ).SerializeToString(),
    "a symbol added to itself 200 times": model(
        [node("Shape", "x", result="s0"), *doubled("Add", 200)], X, shapes={"x": ("N", "M")}
    ).SerializeToString(),
    "a shape joined with itself 40 times": model(
        [node("Shape", "x", result="s0"), *doubled("Concat", 40, axis=0)], X, shapes={"x": ("N", "M")}
    ).SerializeToString(),
    "a large constant negated 100 times": net(
        *(node("Neg", f"s{k}", result=f"s{k + 1}") for k in range(100)), node("ReduceSum", "s100"),
        s0=np.ones(1 << 20, np.float32),
    ),
    "a chain of 3,000 nodes": net(
        *(node("Neg", "x" if k == 0 else f"s{k}", result=f"s{k + 1}") for k in range(3000)), node("Neg", "s3000")
    ),
    "a gather out of range that is never run": net(node("Gather", "c", "i"), c=np.ones(3, np.float32), i=ints(99)),
    "an extent with odd digits": changed(dim(dim_param="²*N+٣")),
    "an extent of 2**63 - 1": changed(dim(dim_value=2**63 - 1)),
}  # fmt: skip

NAMES = {
    "line breaks and code": 'x\n__global__ void evil() {}\nmodule asm "nop"',
    "a path": "../../../etc/passwd",
    "controls of a terminal": "\x1b]0;evil\x07\x1b[2J\x1b[31m",
    "writing from right to left": "\u202egpj.exe\u2066",
    "a script for HTML": "<script>alert(1)</script>",
    "a formula": '=cmd|"/C calc"!A0',
    "100,000 characters": "n" * 100_000,
    "nothing but blanks": " \t ",
    "a word of the grammar": "return",
    "quotes and backslashes": '"\\"; {}',
}


def named(name: str) -> bytes:
    """A model whose input, node, output and graph have that name or start with it."""
    first = helper.make_node("Exp", [name], ["t"], name=name)
    second = helper.make_node("Add", ["t", name], [f"{name}!"], name=f"{name}?")
    made = model([first, second], {name: X["x"]}, (f"{name}!",))
    made.graph.name = name
    return made.SerializeToString()


def loaded(path: Path) -> None:
    """Reads and fuses."""
    gk.optimize(gk.load(path))


def computed(path: Path) -> None:
    """Reads, prints, reads again, compiles, runs and compares."""
    graph = gk.load(path)
    assert gk.parse(str(graph)) == graph
    (found,) = gk.compile(graph, 2)(X["x"])
    np.testing.assert_allclose(found, np.exp(X["x"]) + X["x"], rtol=1e-6)


CASES: tuple[Case, ...] = (
    *files(DOOR, "FrontendError", "input.onnx", loaded, NOT_VALID),
    *files(DOOR, FINE, "input.onnx", loaded, UNSAID),
    *files(DOOR, FINE, "input.onnx", loaded, MUCH),
    *files(DOOR, FINE, "input.onnx", computed, {f"names: {what}": named(name) for what, name in NAMES.items()}),
    *special_files(DOOR, "FrontendError", ".onnx", loaded),
)
