"""Text IR: deep, long, contradictory, or large beyond measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import graphkernel as gk
from tests.hostile.case import FINE, Case, files, special_files

DOOR = "text IR"


def graph(*lines: str, result: str = "y", inputs: str = "x: f32[4]") -> str:
    """A graph of these lines."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"graph main({inputs}) {{\n{body}  return {result}\n}}\n"


def kernels(levels: int, calls: int) -> str:
    """Kernels that call the one before them several times."""
    text = "kernel k0(x: f32[4]) {\n  y: f32[4] = Neg(x)\n  return y\n}\n"
    for level in range(1, levels):
        lines = [f"  y{n + 1}: f32[4] = k{level - 1}(y{n})\n" for n in range(calls)]
        text += f"kernel k{level}(y0: f32[4]) {{\n{''.join(lines)}  return y{calls}\n}}\n"
    return text + graph(f"y: f32[4] = k{levels - 1}(x)")


def joined(times: int) -> str:
    """A small constant joined with itself again and again."""
    lines = ["const c0: f32[2] = [1.0, 2.0]"]
    lines += [f"c{k + 1}: f32[{2 << (k + 1)}] = Concat(c{k}, c{k}, axis=0)" for k in range(times)]
    return graph(*lines, result=f"c{times}")


NOT_READ: Mapping[str, str | bytes] = {
    "an empty text": "",
    "one sign": "(",
    "ten million signs": "(" * 10_000_000,
    "a number of 10,000 digits": graph(f"y: f32[4] = Softmax(x, axis={'1' * 10_000})"),
    "an extent of 10,000 digits": graph("y: f32[4] = Neg(x)", inputs=f"x: f32[{'1' * 10_000}]"),
    "an attribute nested 100,000 deep": graph(f"y: f32[4] = Neg(x, a={'(' * 100_000}1{')' * 100_000})"),
    "an attribute nested 100 deep": graph(f"y: f32[4] = Neg(x, a={'(' * 100}1,{')' * 100})"),
    "2**30 nodes in 30 kernels": kernels(30, 2),
    "kernels nested 100 deep": kernels(100, 1),
    "a kernel that calls itself": "kernel k(x: f32[4]) {\n  y: f32[4] = k(x)\n  return y\n}\n" + graph("y: f32[4] = k(x)"),
    "40 dims": graph("y: f32[4] = Neg(x)", inputs=f"x: f32[{', '.join('1' * 40)}]"),
    "an extent of 100 factors": graph("y: f32[4] = Neg(x)", inputs=f"x: f32[{'*'.join('N' * 100)}]"),
    "an extent of 10,000 summands": graph("y: f32[4] = Neg(x)", inputs=f"x: f32[{' + '.join(f'N{k}' for k in range(10_000))}]"),
    "half of a surrogate pair as a name": graph('"\\ud800": f32[4] = Neg(x)', result='"\\ud800"'),
    "half of a surrogate pair in an attribute": graph('y: f32[4] = Neg(x, a="\\udfff")'),
    "a text that does not end": graph('"y: f32[4] = Neg(x)'),
    "an escape that is none": graph('"\\q": f32[4] = Neg(x)', result='"\\q"'),
    "a null character": graph("y: f32[4] = Neg(x)\0"),
    "bytes that are no text": b"graph main() { return \xff\xfe }",
    "an operator that is not there": graph("y: f32[4] = Evil(x)"),
    "an operand that is not there": graph("y: f32[4] = Neg(z)"),
    "a value that is its own operand": graph("y: f32[4] = Neg(y)"),
    "a value twice": graph("x: f32[4] = Neg(x)"),
    "a type that is none": graph("y: evil[4] = Neg(x)"),
    "another type than the operator's": graph("y: f64[4] = Neg(x)"),
    "too few operands": graph("y: f32[4] = Add(x)"),
    "an attribute of another type": graph('y: f32[4] = Softmax(x, axis="evil")'),
    "an attribute that is a symbol": graph("y: f32[4] = Softmax(x, axis=N)"),
    "an axis out of range": graph("y: f32[4] = Softmax(x, axis=(99,))"),
    "an axis of 2**70": graph(f"y: f32[4] = Softmax(x, axis=({2**70},))"),
    "a reshape to 2**80 elements": graph(f"y: f32[4] = Reshape(x, shape=({2**40}, {2**40}))"),
    "a constant without its elements": graph("const y: f32[1000000000000] = [1.0]"),
    "a constant of a symbolic shape": graph("const y: f32[N] = [1.0]"),
    "an element that does not fit": graph("const y: u8[1] = [300]"),
    "an output written into no input": graph("y: f32[4] = Neg(x)", result="y -> y"),
    "an ONNX operator with JSON that is none": graph(
        'y: f32[4] = Onnx(x, op_type="Relu", attributes="[[[", opset=17, result_types=("evil",))'
    ),
    "an ONNX operator of 2**60 results": graph('y: f32[4] = Onnx(x, op_type="Relu", opset=17, result_types=1)'),
}  # fmt: skip

LONG, BIG = 3_000, 1 << 20
READ: Mapping[str, str] = {
    "a chain of 3,000 nodes": graph(
        *(f"t{k + 1}: f32[4] = Neg({'x' if k == 0 else f't{k}'})" for k in range(LONG)), result=f"t{LONG}"
    ),
    "a constant joined with itself 40 times": joined(40),
    "a tensor of 2**80 elements": graph(
        f"y: f32[{2**40}, {2**40}] = Neg(x)", inputs=f"x: f32[{2**40}, {2**40}]"
    ),
    "a broadcast to 4 TiB": graph(
        "const c: f32[1, 1] = [1.0]", f"y: f32[{BIG}, {BIG}] = BroadcastTo(c, shape=({BIG}, {BIG}))"
    ),
    "a name of 100,000 characters": graph(f"{'n' * 100_000}: f32[4] = Neg(x)", result="n" * 100_000),
    "a comment of ten million signs": "#" + "(" * 10_000_000 + "\n" + graph("y: f32[4] = Neg(x)"),
}  # fmt: skip

NAMES = {
    "line breaks and code": '"x\\nmodule asm \\"nop\\""',
    "a path": '"../../../etc/passwd"',
    "controls of a terminal": '"\\u001b]0;evil\\u0007"',
    "writing from right to left": '"\\u202egpj.exe"',
    "nothing": '""',
    "a word of the grammar": '"return"',
}


def fused(path: Path) -> None:
    """Reads and fuses."""
    gk.optimize(gk.load(path))


def computed(path: Path) -> None:
    """Reads, prints, compiles and runs."""
    graph = gk.load(path)
    assert gk.parse(str(graph)) == graph
    given = np.arange(4, dtype=np.float32)
    (found,) = gk.compile(graph, 2)(given)
    np.testing.assert_allclose(found, np.exp(given) + given, rtol=1e-6)


CASES: tuple[Case, ...] = (
    *files(DOOR, "ParseError", "input.gk", fused, {k: v for k, v in NOT_READ.items() if isinstance(v, str)}),
    *files(DOOR, "FrontendError", "input.gk", fused, {k: v for k, v in NOT_READ.items() if isinstance(v, bytes)}),
    *files(DOOR, FINE, "input.gk", fused, READ),
    *files(DOOR, FINE, "input.gk", computed, {
        f"names: {what}": graph("t: f32[4] = Exp(x)", f"{name}: f32[4] = Add(t, x)", result=name)
        for what, name in NAMES.items()
    }),
    *special_files(DOOR, "FrontendError", ".gk", fused),
)  # fmt: skip
