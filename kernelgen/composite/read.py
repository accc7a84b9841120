"""Composite JSON -> document -> KernelDesc: versions 0, 1 and 2 of AKG's op-info files.

Bad input raises DescError with the JSON path. While reading: variadic groups are flattened, old names replaced, constant
operands turned into attributes, attributes without meaning dropped, unknown extents named, changes of layout written out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from kernelgen.composite.attribute_operands import attribute_operands
from kernelgen.composite.description import KernelDesc, ParallelFusion, Scalar, Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.in_place import drop_dummy_results
from kernelgen.composite.json_cursor import Cursor
from kernelgen.composite.layouts import write_out_layouts
from kernelgen.composite.link import linked
from kernelgen.composite.unknown_extents import UNKNOWN, name_unknown_extents
from kernelgen.composite.vocabulary import WORDS, operator_named
from kernelgen.errors import DescError
from kernelgen.system.bounded_io import UNFIT, check_json, json_value, read_text
from kernelgen.tensor.attrs import Attrs, AttrValue, freeze
from kernelgen.tensor.dims import Dim, Shape, parse_dim, substitute
from kernelgen.tensor.dtypes import BOOL, DType, dtype
from kernelgen.tensor.operator import Operator

NEWEST_VERSION = 2

KNOWN = frozenset(word.name for word in WORDS)

MEANINGLESS_ATTRS = frozenset({
    "visited", "pri_format", "is_backed_cast", "is_backend_cast", "SrcT", "DstT", "io_format", "x_shape", "y_shape",
    "parallel_fusion_type", "output_used_num", "PROFILING_ITER_END", "skip_mode", "side_effect_mem", "cross_batch",
    "is_AICPU_kernel", "keep_value_node_input", "_datadump_original_names", "is_dynamic_len", "Akg", "transpose_x1",
    "transpose_x2", "input_is_dynamic_shape", "output_is_dynamic_shape", "dyn_input_sizes", "n", "N", "inputNums",
})  # fmt: skip


def load_desc(source: str | os.PathLike[str] | Mapping[str, Any], operators: Iterable[Operator] = ()) -> KernelDesc:
    """The description in a file (``.info`` or ``.json``), in JSON text, or in an object already parsed; checked.

    ``operators`` are those that it may hold beside AKG's: what packages of users declare.
    Raises DescError, with the JSON path, for what does not fit, and for a file that cannot be read.
    """
    try:
        return linked(read_document(source, operators))
    except UNFIT as error:
        raise DescError(f"contradicts itself: {type(error).__name__}: {error}") from error


def read_document(source: str | os.PathLike[str] | Mapping[str, Any], operators: Iterable[Operator] = ()) -> Document:
    """The same as the file writes it: names are not linked yet. Raises DescError for what no composite JSON holds."""
    return _document(Cursor(_parsed(source)), {op.name: op for op in operators if op.name not in KNOWN})


def _parsed(source: str | os.PathLike[str] | Mapping[str, Any]) -> Any:  # whatever JSON holds
    if isinstance(source, Mapping):
        document = dict(source)
        check_json(document, DescError)
        return document
    is_text = isinstance(source, str) and source.lstrip().startswith(("{", "["))
    return json_value(str(source) if is_text else read_text(source, DescError), DescError)


def _document(root: Cursor, declared: Mapping[str, Operator]) -> Document:
    if not root.key("composite").value:
        root.key("composite").fail("true: a single named operator of an operator library is not a graph")
    version = 0 if root.key("version").missing else root.key("version").integer()
    if not 0 <= version <= NEWEST_VERSION:
        root.key("version").fail(f"a version from 0 to {NEWEST_VERSION}")
    reader = _Reader(root.key("symbol_calc_expr"), declared)
    desc = Document(
        name=root.key("op").text(),
        inputs=tuple(reader.tensor(_only(group)) for group in root.key("input_desc").items()),
        ops=tuple(reader.op(op) for op in root.key("op_desc").items()),
        outputs=tuple(reader.tensor(tensor) for tensor in root.key("output_desc").items()),
        process="cpu" if root.key("process").missing else root.key("process").text(),
        version=version,
        target_info=_target_info(root),
        buffer_stitch=_names(root.key("buffer_stitch").key("stitch_op"))
        if not root.key("buffer_stitch").missing
        else (),
        parallel_fusion=_parallel_fusion(root.key("parallel_fusion")),
    )
    return drop_dummy_results(write_out_layouts(name_unknown_extents(desc)))


class _Reader:
    """Reads tensors and operators; remembers the shape that a name was first given."""

    def __init__(self, expressions: Cursor, declared: Mapping[str, Operator]) -> None:
        self.declared = declared
        self.shapes: dict[str, Shape] = {}
        self.derived: dict[str, Dim] = {}
        if not expressions.missing:
            for name in expressions.table():
                self.derived[name] = substitute(expressions.key(name).parsed(parse_dim), self.derived)

    def tensor(self, at: Cursor) -> Tensor:
        name = at.key("tensor_name").text()
        kind = at.key("data_type").parsed(dtype)
        shape = self.shape(at)
        value = _constant(at.key("value"), shape, kind)
        layout = "DefaultFormat" if at.key("format").missing else at.key("format").text()
        if value is None:
            first = self.shapes.setdefault(name, shape)
            # AKG writes the shape of a scalar as [] and [1], within one file.
            shape = first if _is_single(first) and _is_single(shape) else shape
        return Tensor(name, shape, kind, layout, value)

    def shape(self, at: Cursor) -> Shape:
        extents = tuple(_extent(item) for item in at.key("shape").items())
        if at.key("shape").missing:
            at.key("shape").fail("a list of extents")
        if at.key("symbolic_shape").missing:
            return extents
        symbolic = tuple(substitute(item.parsed(parse_dim), self.derived) for item in at.key("symbolic_shape").items())
        if len(symbolic) != len(extents):
            at.key("symbolic_shape").fail(f"{len(extents)} entries")
        return tuple(s if e == UNKNOWN else e for e, s in zip(extents, symbolic, strict=True))

    def op(self, at: Cursor) -> Operation:
        name = operator_named(at.key("name").text()).name
        operands = [operand for group in at.key("input_desc").items() for operand in group.items()]
        as_attributes = attribute_operands(name, operands)
        attrs = _attrs(at.key("attr")) | {k: freeze(v) for k, v in as_attributes.values() if v is not None}
        inputs = tuple(self.tensor(o) for i, o in enumerate(operands) if i not in as_attributes)
        outputs = tuple(self.tensor(o) for o in at.key("output_desc").items())
        if not outputs:
            at.key("output_desc").fail("at least one tensor")
        return Operation(name, inputs, outputs, Attrs.of(attrs), self.declared.get(name))


def _only(group: Cursor) -> Cursor:
    members = list(group.items())
    if len(members) != 1:
        group.fail("a group of exactly one tensor")
    return members[0]


def _extent(at: Cursor) -> int:
    extent = at.integer()
    if extent < 0 and extent != UNKNOWN:
        at.fail("an extent: 0 or more, or -1 for an unknown one")
    return extent


def _is_single(shape: Shape) -> bool:
    return all(dim == 1 for dim in shape)


def _constant(at: Cursor, shape: Shape, kind: DType) -> Scalar | None:
    if at.missing:
        return None
    single = next(at.items()) if isinstance(at.value, list) and len(at.value) == 1 else at
    number = single.number()
    if any(dim != 1 for dim in shape):
        at.fail(f"no value: the shape {list(shape)} has more than one element")
    if kind == BOOL:
        return bool(number)
    return int(number) if kind.is_integer else float(number)


def _attrs(at: Cursor) -> dict[str, AttrValue]:
    """The attributes that matter; null and an empty object count as none."""
    if at.value in (None, {}):
        return {}
    found: dict[str, AttrValue] = {}
    for item in at.items():
        name = item.key("name").text()
        if name in MEANINGLESS_ATTRS:
            continue
        kind = item.key("data_type").value
        parse = _symbolic if isinstance(kind, str) and kind.lower().endswith("symbol") else freeze
        found[name] = item.key("value").parsed(parse)
    return found


def _symbolic(value: Any) -> AttrValue:  # whatever JSON holds
    return tuple(parse_dim(item) for item in value) if isinstance(value, list) else parse_dim(value)


def _target_info(root: Cursor) -> Attrs:
    given = {} if root.key("target_info").missing else root.key("target_info").table()
    capability = root.key("compute_capability")
    moved = {} if capability.missing else {"compute_capability": capability.text()}
    return root.key("target_info").parsed(lambda _: Attrs.of({**moved, **given}))


def _names(at: Cursor) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(name.text() for name in group.items()) for group in at.items())


def _parallel_fusion(at: Cursor) -> ParallelFusion | None:
    if at.missing:
        return None
    cores = tuple(item.integer() for item in at.key("core_num").items())
    return ParallelFusion(at.key("fusion_type").text(), _names(at.key("sub_graph")), cores)
