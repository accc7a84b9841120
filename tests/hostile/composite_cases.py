"""Composite JSON for the kernel generator, through ``kernelgen.load_desc`` and through ``gk.load``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
import kernelgen
from tests.hostile.case import FINE, Case, files, special_files

DOOR, GRAPH_DOOR = "composite JSON", "composite JSON as a graph"
Document = dict[str, Any]


def tensor(name: str, shape: list[int] | None = None, **more: object) -> Document:
    """A tensor of the description."""
    return {
        "tensor_name": name,
        "shape": [4] if shape is None else shape,
        "data_type": "float32",
        "format": "DefaultFormat",
        **more,
    }


def document(**more: object) -> Document:
    """y = Exp(x) + x."""
    add = {"name": "Add", "attr": None, "input_desc": [[tensor("t")], [tensor("x")]], "output_desc": [tensor("y")]}
    exp = {"name": "Exp", "attr": None, "input_desc": [[tensor("x")]], "output_desc": [tensor("t")]}
    return {
        "composite": True, "op": "k", "process": "cpu", "input_desc": [[tensor("x")]], "op_desc": [exp, add],
        "output_desc": [tensor("y")], **more,
    }  # fmt: skip


def changed(change: Callable[[Document], object]) -> str:
    """The description after a change."""
    made = document()
    change(made)
    return json.dumps(made)


def first(**entries: object) -> str:
    """The description with other entries of its first operator."""
    return changed(lambda d: d["op_desc"][0].update(entries))


def attribute(value: object, kind: str = "listInt") -> str:
    """The description with an attribute."""
    return first(attr=[{"name": "axis", "value": value, "data_type": kind}])


def nested(depth: int) -> object:
    """A list in a list."""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


NOT_READ: Mapping[str, str | bytes] = {
    "an empty file": "",
    "no JSON": "{evil}",
    "bytes that are no text": b"{\xff\xfe}",
    "a number": "7",
    "a list": "[]",
    "an empty object": "{}",
    "an object nested 100,000 deep": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a list nested 100,000 deep": '{"composite":' + "[" * 100_000 + "]" * 100_000 + "}",
    "an attribute nested 500 deep": attribute(nested(500)),
    "an attribute nested 70 deep": attribute(nested(70)),
    "a number of 5,000 digits": changed(lambda d: d).replace('"k"', "1" * 5000),
    "20 million characters": '{"a": "' + "x" * 20_000_000 + '"}',
    "a million empty lists": '{"a": [' + "[]," * 1_000_000 + "[]]}",
    "half of a surrogate pair as the kernel's name": changed(lambda d: d.update(op="\ud800")),
    "half of a surrogate pair as a tensor's name": changed(lambda d: d["input_desc"][0][0].update(tensor_name="\udfff")),
    "no kernel name": changed(lambda d: d.pop("op")),
    "a kernel name that is a list": changed(lambda d: d.update(op=["k"])),
    "version 2**70": changed(lambda d: d.update(version=2**70)),
    "no operators": changed(lambda d: d.update(op_desc=[])),
    "an operator without results": first(output_desc=[]),
    "an operator without operands": first(input_desc=[]),
    "an operand that is not there": first(input_desc=[[tensor("nobody")]]),
    "an operand that is its own result": first(input_desc=[[tensor("t")]]),
    "a result twice": changed(lambda d: d["op_desc"][1].update(output_desc=[tensor("t")])),
    "a shape of texts": changed(lambda d: d["input_desc"][0][0].update(shape=["import os"])),
    "a shape of fractions": changed(lambda d: d["input_desc"][0][0].update(shape=[1.5])),
    "a shape of -7": changed(lambda d: d["input_desc"][0][0].update(shape=[-7])),
    "a shape that is a number": changed(lambda d: d["input_desc"][0][0].update(shape=4)),
    "a shape of 1,000 dims": changed(lambda d: d["input_desc"][0][0].update(shape=[1] * 1000)),
    "a data type that is not there": changed(lambda d: d["input_desc"][0][0].update(data_type="float33")),
    "a data type that is a list": changed(lambda d: d["input_desc"][0][0].update(data_type=[])),
    "a value that is a text": changed(lambda d: d["op_desc"][0]["input_desc"][0][0].update(value="evil", shape=[1])),
    "a whole number that is infinite": first(
        input_desc=[[{**tensor("c", [1]), "data_type": "int32", "value": float("inf")}]]
    ),
    "an attribute without name": first(attr=[{"value": 1, "data_type": "int"}]),
    "an attribute that is an object": attribute({"evil": 1}),
    "a symbolic extent of 100 factors": changed(
        lambda d: d["input_desc"][0][0].update(shape=[-1], symbolic_shape=["*".join(["N"] * 100)])
    ),
    "a symbol defined 40 times by its square": changed(
        lambda d: d.update(symbol_calc_expr={f"s{k + 1}": f"s{k}*s{k}" for k in range(40)})
    ),
    "a symbol that is a list": changed(lambda d: d.update(symbol_calc_expr={"s": []})),
    "a reduction over axis 99": first(name="ReduceSum", attr=[{"name": "axis", "value": [99], "data_type": "listInt"}]),
    "a transpose by no permutation": first(name="Transpose", attr=[{"name": "perm", "value": [5], "data_type": "listInt"}]),
    "a reshape to other elements": first(name="Reshape", output_desc=[tensor("t", [7])]),
}  # fmt: skip

NAMES = {
    "line breaks and code": 'k\nmodule asm "nop"',
    "a path": "../../../etc/passwd",
    "an end of a comment": "*/ __global__ void evil() {} /*",
    "controls of a terminal": "\x1b]0;evil\x07",
    "10,000 characters": "n" * 10_000,
}


def described(path: Path) -> None:
    """Reads a description."""
    kernelgen.load_desc(path)


def graph(path: Path) -> None:
    """Reads it as a graph."""
    gk.optimize(gk.load(path))


def computed(path: Path) -> None:
    """Compiles, runs and compares."""
    given = np.arange(4, dtype=np.float32)
    (found,) = kernelgen.compile(kernelgen.load_desc(path))(given)
    np.testing.assert_allclose(found, np.exp(given) + given, rtol=1e-6)


def called(name: str) -> str:
    """The description with that name everywhere."""
    text = json.dumps(document())
    for old in ("k", "x", "t", "y"):
        text = text.replace(f'"{old}"', json.dumps(name if old == "k" else f"{name}{old}"))
    return text


def compiled(path: Path) -> None:
    """Compiles."""
    kernelgen.compile(kernelgen.load_desc(path))


NOT_COMPILED = {
    "an unknown operator": first(name="Evil"),
    "tensors of 2**80 elements": json.dumps(document()).replace("[4]", f"[{2**40}, {2**40}]"),
    "2,000 operators": changed(lambda d: d.update(op_desc=[
        {"name": "Exp", "attr": None, "input_desc": [[tensor(f"x{k}" if k else "x")]], "output_desc": [tensor(f"x{k + 1}")]}
        for k in range(2000)
    ], output_desc=[tensor("x2000")])),
}  # fmt: skip

CASES: tuple[Case, ...] = (
    *files(DOOR, "UnsupportedError", "input.info", compiled, NOT_COMPILED),
    *files(DOOR, "DescError", "input.info", described, NOT_READ),
    *files(DOOR, FINE, "input.info", computed, {f"names: {what}": called(name) for what, name in NAMES.items()}),
    *special_files(DOOR, "DescError", ".info", described),
    *files(GRAPH_DOOR, "FrontendError", "input.json", graph, dict(list(NOT_READ.items())[:18])),
)
