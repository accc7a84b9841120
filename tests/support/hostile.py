"""Descriptions that nobody should write: very large, very long, very deep, or nonsense. And long ones that are sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kernel_examples import Writer, constant, tensor

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.write import dump_desc
from kernelgen.tensor.dims import product

Document = dict[str, Any]


def chain(operators: int, shape: tuple[int, ...] = (64, 64)) -> KernelDesc:
    """One operator behind the other, all elementwise."""
    w, x = Writer(), tensor("x", *shape)
    value, names = x, ("Tanh", "Neg", "Abs", "Mul", "Add")
    for position in range(operators):
        name = names[position % len(names)]
        operands = (value, x) if name in ("Mul", "Add") else (value,)
        value = w.op(name, *operands, shape=shape)
    return w.desc("chain", (x,), value)


def softmaxes(count: int, rows: int = 64, columns: int = 64) -> KernelDesc:
    """One softmax behind the other: four operators and two reductions each."""
    w, x = Writer(), tensor("x", rows, columns)
    full, row, value = (rows, columns), (rows, 1), x
    for _ in range(count):
        top = w.op("ReduceMax", value, shape=row, axis=(1,), keep_dims=True)
        e = w.op("Exp", w.op("Sub", value, top, shape=full), shape=full)
        value = w.op("RealDiv", e, w.op("ReduceSum", e, shape=row, axis=(1,), keep_dims=True), shape=full)
    return w.desc("softmaxes", (x,), value)


def column_and_row_sums(count: int, size: int = 64) -> KernelDesc:
    """Reductions along both dims in turn: no two phases can share a loop."""
    w, x = Writer(), tensor("x", size, size)
    value = x
    for position in range(count):
        axis = position % 2
        shape = (1, size) if axis == 0 else (size, 1)
        value = w.op(
            "Sub", value, w.op("ReduceSum", value, shape=shape, axis=(axis,), keep_dims=True), shape=(size, size)
        )
    return w.desc("column_and_row_sums", (x,), value)


def many_inputs(count: int) -> KernelDesc:
    """A sum of as many inputs."""
    inputs = tuple(tensor(f"x{k}", 64, 64) for k in range(count))
    w = Writer()
    return w.desc("many_inputs", inputs, w.op("AddN", *inputs, shape=(64, 64)))


def many_outputs(count: int) -> KernelDesc:
    """As many independent results of one input."""
    w, x = Writer(), tensor("x", 64, 64)
    outputs = [w.op("Mul", x, constant(float(k)), shape=(64, 64)) for k in range(count)]
    return w.desc("many_outputs", (x,), *outputs)


def row_sums(count: int) -> KernelDesc:
    """As many independent row sums of one input: all run in one loop."""
    w, x = Writer(), tensor("x", 64, 64)
    scaled = [w.op("Mul", x, constant(float(k)), shape=(64, 64)) for k in range(count)]
    outputs = [w.op("ReduceSum", value, shape=(64, 1), axis=(1,), keep_dims=True) for value in scaled]
    return w.desc("row_sums", (x,), *outputs)


def many_parts(count: int) -> KernelDesc:
    """As many inputs of different lengths, one behind the other: all write to one buffer."""
    inputs = tuple(tensor(f"x{k}", 3 + k % 5, 64) for k in range(count))
    rows = sum(3 + k % 5 for k in range(count))
    w = Writer()
    return w.desc("many_parts", inputs, w.op("Concat", *inputs, shape=(rows, 64), axis=0))


def many_boxes(count: int) -> KernelDesc:
    """As many operators on tensors of different lengths, which have no loop in common."""
    inputs = tuple(tensor(f"x{k}", 8 + k) for k in range(count))
    w = Writer()
    return w.desc("many_boxes", inputs, *[w.op("Exp", x, shape=x.shape) for x in inputs])


def all_pairs(count: int) -> KernelDesc:
    """Every result adds up all results before it: quadratically many uses."""
    w, x = Writer(), tensor("x", 64)
    values: list[Tensor] = [x]
    for _ in range(count):
        values.append(w.op("AddN", *values, shape=(64,)))
    return w.desc("all_pairs", (x,), values[-1])


def doubled(count: int) -> KernelDesc:
    """Every result is used twice by the next one: 2^count paths, exponentials so that recomputing is dear."""
    w, x = Writer(), tensor("x", 64, 64)
    value = x
    for _ in range(count):
        value = w.op("Mul", value, w.op("Exp", value, shape=(64, 64)), shape=(64, 64))
    return w.desc("doubled", (x,), value)


def huge(*shape: int) -> KernelDesc:
    """One operator on a tensor of that shape."""
    w, x = Writer(), tensor("x", *shape)
    return w.desc("huge", (x,), w.op("Exp", x, shape=shape))


def huge_phases(rows: int, columns: int) -> KernelDesc:
    """Row and column sums between pointwise work: temporaries of full size."""
    w, x = Writer(), tensor("x", rows, columns)
    full = (rows, columns)
    e = w.op("Exp", x, shape=full)
    by_row = w.op("Div", e, w.op("ReduceSum", e, shape=(rows, 1), axis=(1,), keep_dims=True), shape=full)
    by_column = w.op("ReduceSum", by_row, shape=(1, columns), axis=(0,), keep_dims=True)
    return w.desc("huge_phases", (x,), w.op("Div", by_row, by_column, shape=full))


def broadcast_bomb(size: int) -> KernelDesc:
    """Small operands, an enormous product."""
    w = Writer()
    x, y, z = tensor("x", size, 1, 1), tensor("y", 1, size, 1), tensor("z", 1, 1, size)
    plane = w.op("Add", x, y, shape=(size, size, 1))
    cube = w.op("Add", plane, z, shape=(size, size, size))
    return w.desc("bomb", (x, y, z), w.op("ReduceSum", cube, shape=(1,), axis=(0, 1, 2)))


def high_rank(rank: int, extent: int = 2) -> KernelDesc:
    """A transposed tensor added to itself, so that no two dims fold."""
    shape = (extent,) * rank
    w, x = Writer(), tensor("x", *shape)
    turned = w.op("Transpose", x, shape=shape, perm=tuple(reversed(range(rank))))
    return w.desc("high_rank", (x,), w.op("Add", x, turned, shape=shape))


def reshapes(count: int) -> KernelDesc:
    """Reshapes that do not line up, one behind the other, with broadcasts between."""
    shapes = ((36, 35), (35, 36), (42, 30), (30, 42))
    w, x = Writer(), tensor("x", *shapes[0])
    inputs, value = [x], x
    for position in range(count):
        shape = shapes[(position + 1) % 4]
        inputs.append(tensor(f"b{position}", shape[1]))
        value = w.op("Add", w.op("Reshape", value, shape=shape), inputs[-1], shape=shape)
    assert product(value.shape) == 1260
    return w.desc("reshapes", tuple(inputs), value)


def transposes(count: int) -> KernelDesc:
    """A tensor plus its own transpose, again and again."""
    w, value = Writer(), tensor("x", 40, 40)
    x = value
    for _ in range(count):
        turned = w.op("Transpose", value, shape=(40, 40), perm=(1, 0))
        value = w.op("Add", value, turned, shape=(40, 40))
    return w.desc("transposes", (x,), value)


# ---------------------------------------------------------------- nonsense


def _changed(change: Callable[[Document], None]) -> Document:
    document = dump_desc(chain(3))
    change(document)
    return document


def _cycle(document: Document) -> None:
    document["op_desc"][0]["input_desc"][0][0]["tensor_name"] = document["op_desc"][-1]["output_desc"][0]["tensor_name"]


def _undefined_input(document: Document) -> None:
    document["op_desc"][1]["input_desc"][0][0]["tensor_name"] = "nobody"


def _undefined_output(document: Document) -> None:
    document["output_desc"][0]["tensor_name"] = "nobody"


def _defined_twice(document: Document) -> None:
    document["op_desc"][1]["output_desc"][0]["tensor_name"] = document["op_desc"][0]["output_desc"][0]["tensor_name"]


def _own_operand(document: Document) -> None:
    document["op_desc"][0]["input_desc"][0][0]["tensor_name"] = document["op_desc"][0]["output_desc"][0]["tensor_name"]


def _negative_extent(document: Document) -> None:
    document["input_desc"][0][0]["shape"] = [-7, 64]


def _shape_of_strings(document: Document) -> None:
    document["input_desc"][0][0]["shape"] = ["import os", "64"]


def _deep(document: Document) -> None:
    value: Any = 1
    for _ in range(900):
        value = [value]
    document["op_desc"][0]["attr"] = [{"name": "axis", "value": value, "data_type": "listInt"}]


def _no_operators(document: Document) -> None:
    document["op_desc"] = []


NONSENSE: Mapping[str, Callable[[], Document]] = {
    change.__name__.strip("_"): lambda change=change: _changed(change)
    for change in (
        _cycle, _undefined_input, _undefined_output, _defined_twice, _own_operand, _negative_extent, _shape_of_strings,
        _deep, _no_operators,
    )
}  # fmt: skip
