"""Programs as JSON, and back: what a package says of running, without a graph.

Each step is a list that begins with its kind. Types and extents are texts, weights are named by their digests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphkernel.errors import PackageError
from graphkernel.packages.tensors import complete
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.onnxruntime.sessions import Session
from graphkernel.runtime.steps.program import Buffer, Extents, Held, Named, Number, Output, Program, Segment
from graphkernel.runtime.steps.steps import Kernel, KernelStep, NumpyStep, PlacesStep, ShapeStep, Step, ViewStep
from kernelgen.system.bounded_io import json_value
from kernelgen.system.json_parts import Items, flag, text, texts, whole, wholes
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.derived import FUNCTIONS, Derived
from kernelgen.tensor.types import Attrs, AttrValue, Sym, TensorType, dtype, parse_dim, parse_type

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Node

KERNEL, VIEW, PLACES, SHAPE, REGION, NUMPY = "kernel", "view", "places", "shape", "region", "numpy"
COLLECTIVE, WAIT = "collective", "wait"


class Parts(NamedTuple):
    """What a program is made of: kernels and sessions in the order of the package, weights by digest, files of operators."""

    kernels: Sequence[Kernel]
    sessions: Sequence[Session]
    weights: Mapping[str, np.ndarray]
    operators: Mapping[str, str]


def program_text(program: Program, kernel: Callable[[KernelStep], int], digest: Callable[[np.ndarray], str]) -> str:
    """A ``program`` as JSON. ``kernel`` gives the number of a step's kernel, ``digest`` that of a constant."""
    regions = [step for step in program.steps if isinstance(step, RegionStep)]
    document = {
        "size": program.size,
        "steps": [_step_items(step, kernel, regions) for step in program.steps],
        "inputs": [_named_items(given) for given in program.inputs],
        "outputs": [[output.slot, output.copy] for output in program.outputs],
        "results": [_named_items(result) for result in program.results],
        "aliases": program.aliases,
        "derived": [[entry.name, entry.function, str(entry.first), str(entry.second)] for entry in program.derived],
        "constants": [_held_items(held, digest) for held in program.constants],
        "extents": [[slot, str(of), [str(dim) for dim in dims]] for slot, of, dims in program.extents],
        "numbers": [
            [_node_items(node), [[slot, str(of)] for slot, of in operands], outputs]
            for node, operands, outputs in program.numbers
        ],
        "buffers": [
            [b.slot, b.name, str(b.type), b.first, b.last, b.escapes, b.made_by_kernel] for b in program.buffers
        ],
        "differences": [[str(dim), name] for dim, name in program.differences.items()],
        "segments": [[part.first, part.last, part.reads] for part in program.segments],
    }
    return json.dumps(document, separators=(",", ":"))


def read_program(content: str, parts: Parts) -> Program:
    """The program of a text. Raises PackageError for what is none, and for slots that it does not have."""
    try:
        program = _program(cast("Mapping[str, Any]", json_value(content, PackageError)), parts)
        _check(program)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise PackageError(f"a program that is none: {type(error).__name__}: {error}") from error
    return program


def _held_items(held: Held, digest: Callable[[np.ndarray], str]) -> Items:
    if held.array is None:
        raise PackageError(f"the content of constant {held.name} is unknown; give it to parse as weights")
    return [held.slot, digest(held.array), str(TensorType(held.array.shape, dtype(held.array.dtype)))]


def _named_items(given: Named) -> Items:
    return [given.name, str(given.type), given.slot]


def _step_items(step: Step, kernel: Callable[[KernelStep], int], regions: Sequence[RegionStep]) -> Items:
    border = step.name, step.inputs, step.outputs
    if isinstance(step, KernelStep):
        return [
            KERNEL,
            *border,
            kernel(step),
            sorted(step.private),
            step.stored,
            step.untold,
            step.prepared,
            step.rows,
            step.awaited,
            step.ahead,
        ]
    if isinstance(step, ViewStep):
        return [VIEW, *border, [str(dim) for dim in step.shape]]
    if isinstance(step, PlacesStep):
        return [PLACES, *border, str(step.extent)]
    if isinstance(step, ShapeStep):
        return [SHAPE, *border]
    if isinstance(step, RegionStep):
        types = [str(of) for of in step.input_types], [str(of) for of in step.output_types]
        return [REGION, *border, regions.index(step), step.input_names, step.output_names, *types, sorted(step.unsized)]
    if isinstance(step, NumpyStep):
        return [NUMPY, *border, _node_items(step.node)]
    return _ordered_items(step)


def _ordered_items(step: Step) -> Items:
    """A step that speaks to other processes, or waits for them."""
    from graphkernel.runtime.steps.collective import CollectiveStep, WaitStep  # few programs have such

    border = step.name, step.inputs, step.outputs
    if isinstance(step, CollectiveStep):
        return [COLLECTIVE, *border, _node_items(step.node), step.takes_rows]
    if isinstance(step, WaitStep):
        return [WAIT, *border]
    raise PackageError(f"step {step.name} runs on no library of a package")


def _node_items(node: Node) -> Items:
    """An operator without its operands."""
    attrs = {name: _attribute_items(value) for name, value in node.attrs.items()}
    return [node.op.name, attrs, [str(of) for of in node.types], node.name]


def _attribute_items(value: AttrValue) -> Any:
    if isinstance(value, tuple):
        return [_attribute_items(item) for item in value]
    if isinstance(value, float):  # JSON has no infinity
        return {"float": value.hex()}
    return {"dim": str(value)} if isinstance(value, Sym) else value


def _program(given: Mapping[str, Any], parts: Parts) -> Program:
    return Program(
        whole(given["size"]),
        tuple(_step(items, parts) for items in given["steps"]),
        tuple(map(_named, given["inputs"])),
        tuple(Output(whole(slot), flag(copy)) for slot, copy in given["outputs"]),
        tuple(map(_named, given["results"])),
        tuple((whole(one), whole(other)) for one, other in given["aliases"]),
        tuple(map(_derived, given["derived"])),
        tuple(_held(items, parts.weights) for items in given["constants"]),
        tuple(map(_extents, given["extents"])),
        tuple(_number(items, parts) for items in given["numbers"]),
        tuple(map(_buffer, given["buffers"])),
        {cast("Sym", parse_dim(text(dim))): text(name) for dim, name in given["differences"]},
        tuple(map(_segment, given["segments"])),
    )


def _step(items: Items, parts: Parts) -> Step:
    kind, name, inputs, outputs, *more = items
    border = wholes(inputs), wholes(outputs)
    if kind == KERNEL:
        number, private, stored, untold, prepared, rows, *tokens = more
        pairs = tuple((whole(slot), whole(position)) for slot, position in stored)
        kernel, updated = parts.kernels[whole(number)], frozenset(wholes(private))
        axes = tuple(None if axis is None else whole(axis) for axis in rows)
        awaited, ahead = (None if token is None else whole(token) for token in tokens)
        told = pairs, texts(untold), whole(prepared), axes, awaited, ahead
        return KernelStep(text(name), kernel, *border, updated, *told)
    if kind == VIEW:
        return ViewStep(text(name), *border, tuple(parse_dim(text(dim)) for dim in more[0]))
    if kind == PLACES:
        return PlacesStep(text(name), *border, parse_dim(text(more[0])))
    if kind == SHAPE:
        return ShapeStep(text(name), *border)
    if kind == REGION:
        number, input_names, output_names, input_types, output_types, unsized = more
        names = texts(input_names), texts(output_names)
        types = tuple(map(parse_type, input_types)), tuple(map(parse_type, output_types))
        session = parts.sessions[whole(number)]
        return RegionStep(text(name), session, *names, *border, *types, (), frozenset(wholes(unsized)))
    if kind == NUMPY:
        return NumpyStep(_node(more[0], parts), *border)
    return _ordered_step(items, parts)


def _ordered_step(items: Items, parts: Parts) -> Step:
    """The inverse of :func:`_ordered_items`."""
    from graphkernel.runtime.steps.collective import CollectiveStep, WaitStep  # few programs have such

    kind, name, inputs, outputs, *more = items
    border = wholes(inputs), wholes(outputs)
    if kind == COLLECTIVE:
        return CollectiveStep(_node(more[0], parts), *border, takes_rows=flag(more[1]))
    if kind == WAIT:
        return WaitStep(text(name), *border)
    raise ValueError(f"a step of kind {kind!r}")


def _node(items: Items, parts: Parts) -> Node:
    from graphkernel.packages.nodes import PackedNode, operator_file  # kernels and regions have no need of it

    operator, attrs, types, name = items
    values = Attrs(tuple((key, _attribute(value)) for key, value in attrs.items()))
    file = operator_file(parts.operators[operator])
    packed = PackedNode(text(operator), file, values, tuple(map(parse_type, types)), text(name))
    return cast("Node", packed)  # it has all that running asks of one


def _attribute(given: Any) -> AttrValue:
    if isinstance(given, list):
        return tuple(_attribute(item) for item in cast("list[Any]", given))
    if isinstance(given, dict):
        ((kind, value),) = cast("dict[str, str]", given).items()
        return float.fromhex(value) if kind == "float" else parse_dim(value)
    return given


def _named(items: Items) -> Named:
    name, of, slot = items
    return Named(text(name), parse_type(of), whole(slot))


def _held(items: Items, weights: Mapping[str, np.ndarray]) -> Held:
    slot, digest, of = items
    if digest not in weights:
        raise PackageError(f"a package without the weights {digest}")
    return Held(digest, whole(slot), complete(weights[digest], parse_type(of)))


def _derived(items: Items) -> Derived:
    name, function, first, second = items
    if function not in FUNCTIONS:
        raise ValueError(f"no extent is a {function} of others")
    return Derived(text(name), function, parse_dim(text(first)), parse_dim(text(second)))


def _extents(items: Items) -> Extents:
    slot, of, dims = items
    found = Extents(whole(slot), parse_type(of), tuple(parse_dim(text(dim)) for dim in dims))
    if found.type.size != len(found.dims):
        raise ValueError(f"{len(found.dims)} numbers in place of {of}")
    return found


def _number(items: Items, parts: Parts) -> Number:
    node, operands, outputs = items
    given = tuple((whole(slot), parse_type(of)) for slot, of in operands)
    return Number(_node(node, parts), given, wholes(outputs))


def _buffer(items: Items) -> Buffer:
    slot, name, of, first, last, escapes, made_by_kernel = items
    life = whole(first), whole(last)
    return Buffer(whole(slot), text(name), parse_type(of), *life, flag(escapes), flag(made_by_kernel))


def _segment(items: Items) -> Segment:
    first, last, reads = items
    told = tuple((text(name), whole(slot), whole(axis)) for name, slot, axis in reads)
    return Segment(whole(first), whole(last), told)


def _check(program: Program) -> None:
    """Raises ValueError where a slot, a step or a position is none of the program's."""
    if max(_slots_of(program), default=-1) >= program.size:
        raise ValueError("a slot beyond the last one")
    if not _follow_each_other(program.segments, len(program.steps)):
        raise ValueError("segments that do not follow each other")
    if [output.slot for output in program.outputs] != [result.slot for result in program.results]:
        raise ValueError("outputs in other slots than results")
    if not all(one < len(program.inputs) and other < len(program.outputs) for one, other in program.aliases):
        raise ValueError("an input or output beyond the last one")
    if any(buffer.last > len(program.steps) for buffer in program.buffers):
        raise ValueError("a buffer that outlives the steps")


def _slots_of(program: Program) -> Iterator[int]:
    """Every slot that anything in it names."""
    for step in program.steps:
        yield from (*step.inputs, *step.outputs)
    for each in (*program.inputs, *program.outputs, *program.constants, *program.extents, *program.buffers):
        yield each.slot
    for segment in program.segments:
        yield from (slot for _, slot, _ in segment.reads)
    for number in program.numbers:
        yield from number.outputs


def _follow_each_other(segments: Sequence[Segment], steps: int) -> bool:
    """Whether each begins where the one before ends, the first at 0, and the last ends behind the last step."""
    end = 0
    for segment in segments:
        if segment.first != end or segment.last < end:
            return False
        end = segment.last
    return end == steps
