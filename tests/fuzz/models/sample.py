"""A model with sets of inputs: how it is drawn, written, and made smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from google.protobuf.json_format import MessageToDict, ParseDict
from onnx import ModelProto, TensorProto, defs, helper, numpy_helper
from onnx.defs import OpSchema

from tests.fuzz.models.draft import SETS, SYMBOLS, Draft, Extent, Known, Rejected
from tests.fuzz.models.oracle import Array
from tests.fuzz.models.recipes import RECIPES, drawable

Arrays = Mapping[str, Array]
OLDEST_OPSET = 7
NEWEST_OPSET = defs.onnx_opset_version()
MOST_NODES = 12
TRIES = 40
SYMBOL_NAMES = ("N", "M", "K")


@dataclass(frozen=True, eq=False)
class ModelSample:
    """A model and its inputs, by name, in every set."""

    model: ModelProto
    sets: tuple[Arrays, ...]

    @property
    def opset(self) -> int:
        """Of ONNX's own domain."""
        return self.model.opset_import[0].version

    @property
    def constants(self) -> dict[str, Array]:
        """The initializers."""
        return {tensor.name: numpy_helper.to_array(tensor) for tensor in self.model.graph.initializer}


def draw(seed: int) -> ModelSample:
    """The model of a seed."""
    random = Random(seed)
    draft = Draft(
        random, np.random.default_rng(seed), random.randint(OLDEST_OPSET, NEWEST_OPSET),
        special=random.random() < 1 / 3,
        symbols=tuple(random.sample(SYMBOLS, random.choice((1, 1, 2)))) if random.random() < 1 / 3 else (),
    )  # fmt: skip
    wanted = random.choice((1, 2, 3, 4, 5, 6, 7, 8, 10, MOST_NODES))
    for _ in range(TRIES):
        if len(draft.nodes) < wanted:
            propose(draft, random.choices(*drawable(draft.opset))[0])
    if not draft.nodes:
        draft.op = "Identity"
        draft.add(RECIPES["Identity"](draft))
    return finished(draft)


def propose(draft: Draft, op: str) -> bool:
    """Draws one node; whether it got in."""
    draft.op = op
    mark = draft.mark()
    try:
        draft.add(RECIPES[op](draft))
    except Rejected:
        draft.restore(mark)
        return False
    return True


def finished(draft: Draft) -> ModelSample:
    """The model of what was drawn: values that nobody uses, and a few others, are its outputs."""
    used = {name for node in draft.nodes for name in node.input}
    made = [value for value in draft.values if any(value.name in node.output for node in draft.nodes)]
    outputs = [value for value in made if value.name not in used or draft.chance(0.1)]
    kept = outputs[-1:] + [value for value in outputs[:-1] if value.name in used or not draft.chance(0.2)]
    _skip_results(draft, used | {value.name for value in kept})
    inputs = [value for value in draft.inputs if value.name in used]
    constants = [value for value in draft.constants if value.name in used]
    graph = helper.make_graph(
        draft.nodes, "drawn", [_info(draft, value) for value in inputs],
        [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.dtype), None) for v in kept],
        [numpy_helper.from_array(value.arrays[0], value.name) for value in constants],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", draft.opset)], ir_version=10)
    return ModelSample(model, tuple({value.name: value.arrays[i] for value in inputs} for i in range(SETS)))


def _skip_results(draft: Draft, needed: set[str]) -> None:
    """Half of the results that nobody uses get an empty name, where ONNX allows it and the node has others."""
    for node in draft.nodes:
        formal = defs.get_schema(node.op_type, draft.opset, "").outputs
        for position, name in enumerate(node.output):
            optional = formal[min(position, len(formal) - 1)].option != OpSchema.FormalParameterOption.Single
            others = [other for other in node.output if other in needed]
            if optional and name not in needed and others and draft.chance(0.5):
                node.output[position] = ""


def _info(draft: Draft, value: Known) -> Any:  # ValueInfoProto
    dims = [_dim(draft, extent) for extent in value.dims]
    return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.dtype), dims)


def _dim(draft: Draft, extent: Extent) -> int | str:
    """The extent, or the name of the symbol; extents that no symbol has come from others and get one of their own."""
    if len(set(extent)) == 1:
        return extent[0]
    if extent in draft.symbols:
        return SYMBOL_NAMES[draft.symbols.index(extent)]
    return "d" + "_".join(map(str, extent))


def to_json(sample: ModelSample) -> Any:  # JSON
    """Readable, and small."""
    sets = [[MessageToDict(numpy_helper.from_array(array, name)) for name, array in s.items()] for s in sample.sets]
    return {"model": MessageToDict(sample.model), "sets": sets}


def from_json(document: Any) -> ModelSample:
    """The inverse of :func:`to_json`."""
    tensors = [[ParseDict(tensor, TensorProto()) for tensor in given] for given in document["sets"]]
    sets = tuple({tensor.name: numpy_helper.to_array(tensor) for tensor in given} for given in tensors)
    return ModelSample(ParseDict(document["model"], ModelProto()), sets)


def smaller(sample: ModelSample, values: tuple[Arrays, ...]) -> Iterator[ModelSample]:
    """Without a node, whose results become inputs; with one output. ``values`` holds every value in every set."""
    graph = sample.model.graph
    if len(graph.output) > 1:
        for output in graph.output:
            yield _with(sample, values, list(graph.node), [output.name])
    for node in reversed(graph.node):
        rest = [other for other in graph.node if other is not node]
        results = [output.name for output in graph.output if output.name not in node.output]
        if rest and results:
            yield _with(sample, values, rest, results)
    if sample.sets[1:]:
        yield ModelSample(sample.model, sample.sets[:1])


def _with(sample: ModelSample, values: tuple[Arrays, ...], nodes: list[Any], outputs: list[str]) -> ModelSample:
    """The nodes that lead to the outputs; what none of them makes is an input."""
    graph = sample.model.graph
    kept, needed = [], set(outputs)
    for node in reversed(nodes):
        if needed & set(node.output):
            kept.insert(0, node)
            needed |= {name for name in node.input if name}
    made = {name for node in kept for name in node.output}
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    names = sorted(needed - made - {tensor.name for tensor in constants})
    declared = {info.name: info for info in graph.input}
    infos = [declared.get(name) or _as_input(name, [s[name] for s in values]) for name in names]
    reduced = helper.make_graph(kept, "drawn", infos, [o for o in graph.output if o.name in outputs], constants)
    model = helper.make_model(
        reduced, opset_imports=list(sample.model.opset_import), ir_version=sample.model.ir_version
    )
    return ModelSample(model, tuple({name: s[name] for name in names} for s in values))


def _as_input(name: str, arrays: list[Array]) -> Any:  # ValueInfoProto
    extents = list(zip(*(array.shape for array in arrays), strict=True))
    dims = [extent[0] if len(set(extent)) == 1 else "d" + "_".join(map(str, extent)) for extent in extents]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(arrays[0].dtype), dims)
