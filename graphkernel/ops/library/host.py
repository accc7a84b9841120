"""``Onnx``: any ONNX operator that has no operator of ours. It always runs on the host library.

Its attributes carry everything: ``op_type``, ``domain``, ``opset``, ``attributes`` (JSON of the ONNX attributes),
``result_types`` (texts such as ``"f32[1, 8]"``), ``present`` (which optional operands are there; default all) and
``wanted`` (which results are there, in the same way; ``result_types`` holds the types of these) and ``defines``: the
symbols in ``result_types`` that stand for extents that depend on data, such as how many elements are not zero.
``operand_types`` names the data types of operands where some are no numbers; others have the text ``""`` there.
The last operands are those that the bodies of the operator know by the names ``captured``; ``domains`` are texts such
as ``"com.microsoft 1"``: domains of operators in bodies, with their opsets.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.library.host_bodies import MOST_DEEP, bodies_of, rename
from graphkernel.ops.library.host_values import cast_at_border, type_proto
from kernelgen.tensor.boxes import boxed, unboxed
from kernelgen.tensor.definitions import place_in
from kernelgen.tensor.elements import CARRIER, for_session, from_session, is_carried
from kernelgen.tensor.graph import DEFINES, Node
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.types import Attrs, DType, TensorType, dtype, is_whole, parse_type

if TYPE_CHECKING:
    from onnx import AttributeProto, ModelProto, NodeProto

Types = tuple[TensorType, ...]

REFERENCE = "onnx.reference"
OPERANDS = "operand_types"
CAPTURED = "captured"
DOMAINS = "domains"
RANDOM = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""ONNX's operators that draw numbers."""

MOST_LEVELS = 16 + 8 * MOST_DEEP
"""Of the text form of attributes."""

MOVING = frozenset({
    "CenterCropPad", "Compress", "DepthToSpace", "GatherElements", "GatherND", "Pad", "ReverseSequence", "SpaceToDepth",
    "Trilu", "Unique",
})  # fmt: skip
"""Those that take elements as they are: what onnxruntime lacks for 8 or 16 bits, it does for 32."""
WIDER = {"int8": "int32", "uint8": "uint32", "int16": "int32", "uint16": "uint32"}


def onnx_node(attrs: Attrs, operands: Iterable[str], results: Iterable[str]) -> NodeProto:
    """The ONNX node of an ``Onnx`` operator; optional operands and results that are not there become ``""``."""
    from onnx import NodeProto  # the extra "onnx" is needed only when such a node is met

    given, made = _at_places(attrs, "present", operands), _with_required(_at_places(attrs, "wanted", results), attrs)
    captured = captured_by(attrs)
    own = given[: len(given) - len(captured)]
    node = NodeProto(op_type=attrs.str("op_type"), domain=attrs.str("domain", ""), input=own, output=made)
    node.attribute.extend(attributes_from_json(attrs.str("attributes", "[]")))
    for body in bodies_of(node):
        rename(body, dict(zip(captured, given[len(own) :], strict=True)))
    return node


def captured_by(attrs: Attrs) -> tuple[str, ...]:
    """What the last operands of an operator are called in its bodies."""
    found = attrs.get(CAPTURED, ())
    return tuple(map(str, found)) if isinstance(found, tuple) else ()


def domains_of(attrs: Attrs) -> dict[str, int]:
    """The opset of every domain but ONNX's own that an operator needs, for itself and in its bodies."""
    said = attrs.get(DOMAINS, ())
    texts = map(str, said if isinstance(said, tuple) else ())
    found = {name: int(version) for name, _, version in (text.rpartition(" ") for text in texts)}
    domain = attrs.str("domain", "")
    return {**found, domain: attrs.int("opset")} if domain else found


def _at_places(attrs: Attrs, places: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names where the attribute ``places`` has a 1, ``""`` where it has a 0."""
    given = tuple(names)
    rest = iter(given)
    return given if places not in attrs else tuple(next(rest) if there else "" for there in attrs.ints(places))


def _with_required(results: tuple[str, ...], attrs: Attrs) -> tuple[str, ...]:
    """The names of results, of which those that nobody wants have one too where the operator must give them."""
    from onnx import defs

    domain = attrs.str("domain", "")
    if all(results) or not defs.has(attrs.str("op_type"), domain):
        return results
    said = defs.get_schema(attrs.str("op_type"), attrs.int("opset"), domain).outputs
    single, last = defs.OpSchema.FormalParameterOption.Single, "".join(results[-1:])
    pairs = zip_longest(results, said[: len(results)])
    return tuple(
        name or (f"{last}.beside{place}" if of is not None and of.option == single else "")
        for place, (name, of) in enumerate(pairs)
    )


def operator_name(node: Node) -> str:
    """The operator's name; of a generic ONNX operator its own."""
    return node.attrs.str("op_type") if node.op is ONNX else node.op.name


def attributes_to_json(attributes: Iterable[AttributeProto]) -> str:
    """ONNX attributes as JSON text, sorted by name so that equal attributes give equal text."""
    from google.protobuf.json_format import MessageToDict

    ordered = sorted(attributes, key=lambda attribute: attribute.name)
    return json.dumps([MessageToDict(attribute) for attribute in ordered], sort_keys=True)


def attributes_from_json(text: str) -> list[AttributeProto]:
    """The inverse of :func:`attributes_to_json`."""
    from google.protobuf.json_format import ParseDict
    from onnx import AttributeProto

    return [ParseDict(entry, AttributeProto(), max_recursion_depth=MOST_LEVELS) for entry in json.loads(text)]


def attribute_values(node: Node) -> dict[str, Any]:  # as onnx has them
    """The attributes of a generic ONNX operator: numbers, texts, tuples of them, or messages, by their names."""
    from onnx import helper

    given = attributes_from_json(node.attrs.str("attributes", "[]"))
    return {each.name: _plain(helper.get_attribute_value(each)) for each in given}


def _plain(value: Any) -> Any:  # as onnx has them
    if isinstance(value, bytes):
        return value.decode()
    return tuple(map(_plain, value)) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _stated_types(types: Types, attrs: Attrs) -> Types:
    texts = attrs.get("result_types")
    if not isinstance(texts, tuple) or not texts:
        raise TypeRuleError("result_types must be a tuple of types such as ('f32[1, 8]',)")
    opaque = tuple(type_.dtype.name if type_.dtype.is_opaque else "" for type_ in types)
    if any(opaque) and attrs.get(OPERANDS) != opaque:
        raise TypeRuleError(f"{OPERANDS} must be {opaque}, got {attrs.get(OPERANDS)}")
    results = tuple(parse_type(str(text)) for text in texts)
    defined = attrs.get(DEFINES, ())
    if not isinstance(defined, tuple):
        raise TypeRuleError(f"what is defined must be a tuple of symbols such as ('u0',), got {defined!r}")
    for name in defined:
        if not isinstance(name, str) or place_in(results, name) is None:
            raise TypeRuleError(f"{name!r} is to be defined, and is no extent of a result")
    return results


def _run(*arrays: Array, attrs: Attrs) -> Any:  # one array, or a tuple of several
    """The meaning by onnxruntime; by onnx's reference evaluator where onnxruntime lacks the operator."""
    found = by_onnxruntime(arrays, attrs)
    values = tuple(_by_reference(arrays, attrs) if found is None else found)
    return values[0] if len(values) == 1 else values


def is_onnx(node: Node, op_type: str) -> bool:
    """Whether it is ONNX's operator of that name."""
    return node.op is ONNX and node.attrs.str("op_type") == op_type


def is_random_onnx(node: Node) -> bool:
    """Whether it is one of ONNX's operators that give other numbers in each run."""
    if node.op is not ONNX:
        return False
    drawn = {node.attrs.str("op_type"), *re.findall(r'"opType": "(\w+)"', node.attrs.str("attributes", ""))}
    return not drawn.isdisjoint(RANDOM)


def runner(node: Node) -> str:
    """Who computes an operator by its meaning; of ONNX's generic ones onnxruntime, if it has them, else onnx itself."""
    if node.op is not ONNX:
        return "numpy"
    types = [value.type for value in node.args]
    names, ranks = tuple(type_.dtype.name for type_ in types), tuple(type_.rank for type_ in types)
    return REFERENCE if _hosted(node.attrs, names, ranks) is None else "onnxruntime"


def by_onnxruntime(arrays: Sequence[Array], attrs: Attrs) -> list[Array] | None:
    """The results by onnxruntime in the very opset; None when it is not installed or has no such operator.

    Raises what onnxruntime raises when the operator fails on these numbers.
    """
    given = [np.asarray(array) for array in arrays]
    hosted = _hosted(attrs, _names(given, attrs), tuple(array.ndim for array in given))
    if hosted is None:
        return None
    session, names = hosted
    feeds = {f"x{i}": _fed(x, dtype(name)) for i, (x, name) in enumerate(zip(given, names, strict=True))}
    stated = _stated_types((), attrs)
    return [_result(value, of) for value, of in zip(session.run(None, feeds), stated, strict=True)]


def _names(arrays: Sequence[Array], attrs: Attrs) -> tuple[str, ...]:
    """The data types of the operands: arrays tell them, but for what is no number."""
    said = attrs.get(OPERANDS)
    opaque = said if isinstance(said, tuple) else ("",) * len(arrays)
    return tuple(str(name or array.dtype.name) for name, array in zip(opaque, arrays, strict=True))


def _fed(array: Array, of: DType) -> Any:  # what onnxruntime's run takes
    return for_session(array, of) if of.is_opaque else array.astype(of.numpy, copy=False)


def _result(value: Any, of: TensorType) -> Array:  # what onnxruntime's run gives
    return from_session(value, of.dtype) if of.dtype.is_opaque else _narrowed(np.asarray(value), of)


def _hosted(attrs: Attrs, names: tuple[str, ...], ranks: tuple[int, ...]) -> tuple[Any, tuple[str, ...]] | None:
    """A session that runs the operator, and the data types that it takes; None when there is none."""
    own = tuple(map(_widened, names))
    wide = tuple(WIDER.get(name, name) for name in own) if attrs.str("op_type") in MOVING else own
    found = ((_session(attrs, each, ranks), each) for each in dict.fromkeys((own, wide)))
    return next(((session, each) for session, each in found if session is not None), None)


def _widened(name: str) -> str:
    """onnxruntime takes no arrays of bfloat16: float32 holds all its numbers, and results are rounded once."""
    return "float32" if name == "bfloat16" else name


def _narrowed(array: Array, wanted: TensorType) -> Array:
    widened = wanted.dtype.name == "bfloat16" or array.dtype.name == WIDER.get(wanted.dtype.name)
    return array.astype(wanted.dtype.numpy) if widened else array


@lru_cache(maxsize=64)
def _session(attrs: Attrs, names: tuple[str, ...], ranks: tuple[int, ...]) -> Any:  # a session of onnxruntime, or None
    """A session of the operator alone, over operands of these data types and ranks."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # nothing: what it declines is answered here
    for opset in dict.fromkeys((attrs.int("opset"), _version_of(attrs))):
        content = _model(
            attrs.with_(opset=opset), names, [[None] * rank for rank in ranks], opaque_number
        ).SerializeToString()
        with contextlib.suppress(Exception):  # it raises many classes of its own
            return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return None


def _version_of(attrs: Attrs) -> int:
    """The opset in which the operator was last changed: an older onnxruntime knows it by that one."""
    from onnx import defs

    try:
        return defs.get_schema(attrs.str("op_type"), attrs.int("opset"), attrs.str("domain", "")).since_version
    except defs.SchemaError:  # no operator of ONNX's own
        return attrs.int("opset")


def _by_reference(arrays: Sequence[Array], attrs: Attrs) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    names = _names(arrays, attrs)
    evaluator = ReferenceEvaluator(_model(attrs, names, [array.shape for array in arrays], no_number))
    feeds = {f"x{i}": unboxed(array, dtype(name)) for i, (array, name) in enumerate(zip(arrays, names, strict=True))}
    found: Any = evaluator.run(None, copy.deepcopy(feeds))  # what it gives may hold what it was given
    stated = _stated_types((), attrs)
    return [
        boxed(value) if is_whole(of.dtype) else np.asarray(value, of.dtype.numpy if of.dtype.is_opaque else None)
        for value, of in zip(found, stated, strict=True)
    ]


def _model(
    attrs: Attrs,
    names: Sequence[str],
    shapes: Sequence[Sequence[int | None]],
    carries: Callable[[DType], bool],
) -> ModelProto:
    """A model of the operator alone, from ``x0, x1, ...`` to its results; what ``carries`` holds of is cast at the border."""
    from onnx import defs, helper

    operands = [dtype(name) for name in names]
    results = [type_.dtype for type_ in _stated_types((), attrs)]
    inputs = [
        _info(f"x{i}", of, shape, carries(of)) for i, (of, shape) in enumerate(zip(operands, shapes, strict=True))
    ]
    inwards = [cast_at_border(f"x{i}", f"own:x{i}", of, inwards=True) for i, of in enumerate(operands) if carries(of)]
    outwards = [cast_at_border(f"own:y{i}", f"y{i}", of, inwards=False) for i, of in enumerate(results) if carries(of)]
    taken = [f"own:x{i}" if carries(of) else f"x{i}" for i, of in enumerate(operands)]
    made = [f"own:y{i}" if carries(of) else f"y{i}" for i, of in enumerate(results)]
    node = onnx_node(attrs, taken, made)
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(len(results))]
    graph = helper.make_graph([*inwards, node, *outwards], "host", inputs, outputs)
    own = {"": attrs.int("opset")} if not attrs.str("domain", "") else {"": defs.onnx_opset_version()}
    opsets = {**own, **domains_of(attrs)}
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(
        graph, opset_imports=imports, ir_version=min(10, helper.find_min_ir_version_for(imports, ignore_unknown=True))
    )


def opaque_number(of: DType) -> bool:
    """Whether elements are numbers that numpy itself does not know."""
    return of.is_opaque and is_carried(of)


def no_number(_: DType) -> bool:
    """None: onnx's evaluator takes all as they are."""
    return False


def _info(name: str, of: DType, shape: Sequence[int | None], carried: bool) -> Any:  # an onnx message
    from onnx import helper

    known = dtype("tensor(float)" if is_whole(of) else CARRIER) if carried else of
    return helper.make_value_info(name, type_proto(TensorType((), known), shape))


ONNX = declare(
    "Onnx",
    Kind.OPAQUE,
    None,
    _stated_types,
    _run,
    attributes=(
        "op_type",
        "domain",
        "opset",
        "attributes",
        "result_types",
        "present",
        "wanted",
        DEFINES,
        OPERANDS,
        CAPTURED,
        DOMAINS,
    ),
    composite=True,
    takes_opaque=True,
)
