"""A document becomes a graph, and a graph becomes a document: names are linked, in-place operators become aliases.

p: f32[8]                                       kernel(p: f32[8], x: f32[8])
a = Exp(p)                                        a = Exp(p)
b = Assign(p, x)                   <->            b = Assign(p, x)
c = Neg(p)  # of what p holds now                 c = Neg(b)
outputs: a, c                                     return a = a, c = c, p = b -> p
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kernelgen.composite.check import require_sound
from kernelgen.composite.description import KernelDesc, Tensor, constant, number_of
from kernelgen.composite.document import IN_PLACE, Document, Operation
from kernelgen.composite.vocabulary import INPLACE_ASSIGN, is_declared
from kernelgen.errors import DescError
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.graph import PARAMETER, Alias, Graph, Node, Value
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.elemwise import TENSOR_MOVE
from kernelgen.tensor.operators.shape import RESHAPE


def linked(document: Document) -> KernelDesc:
    """The kernel that a document describes. Raises DescError, with the JSON path, for one that is not sound.

    An operand is defined before with the same shape and data type, nothing is defined twice, only inputs are assigned to, and
    every operator's operands and results fit.
    """
    linker = _Linker()
    for place, tensor in enumerate(document.inputs):
        linker.parameter(tensor, f"$.input_desc[{place}][0]")
    inputs = tuple(linker.values.values())
    for place, operation in enumerate(document.ops):
        linker.operation(operation, f"$.op_desc[{place}]")
    outputs = [linker.read(t, f"$.output_desc[{k}]", "the kernel") for k, t in enumerate(document.outputs)]
    names = [tensor.name for tensor in document.outputs]
    aliases: list[Alias] = []
    for place, value in enumerate(inputs):
        if value in linker.stored:
            aliases.append(Alias(len(outputs), place))
            outputs.append(linker.stored[value])
            names.append(value.node.name)
    linker.require_groups(document)
    return KernelDesc(
        Graph(document.name, inputs, tuple(outputs), tuple(aliases), tuple(names)),
        tuple(linker.operators),
        document.process,
        document.version,
        document.target_info,
        document.buffer_stitch,
        document.parallel_fusion,
    )


@dataclass
class _Linker:
    """The value that each name stands for now, what was stored into inputs, and the operators so far."""

    values: dict[str, Value] = field(default_factory=dict[str, Value])
    stored: dict[Value, Value] = field(default_factory=dict[Value, Value])
    operators: list[Node] = field(default_factory=list[Node])

    def parameter(self, tensor: Tensor, path: str) -> None:
        """An input of the kernel."""
        if tensor.value is not None:
            raise DescError(f"input {tensor.name!r} must not be a constant", f"{path}.value")
        if tensor.name in self.values:
            raise DescError(f"input {tensor.name!r} is listed twice", path)
        self.values[tensor.name] = Node(PARAMETER, (), Attrs(), (tensor.type,), tensor.name).out

    def operation(self, operation: Operation, path: str) -> None:
        """One operator, and what its results stand for."""
        name = operation.name
        args = tuple(
            self.read(t, f"{path}.input_desc[{k}][0]", name) if t.value is None else constant(t.value, t.type, t.name)
            for k, t in enumerate(operation.args)
        )
        require_sound(operation, path)
        if operation.op in IN_PLACE:
            found = self.assign(operation, args, path)
        else:
            types = tuple(tensor.type for tensor in operation.outs)
            found = self.made(Node(operation.op, args, operation.attrs, types, operation.outs[0].name)).outs
        for place, (tensor, value) in enumerate(zip(operation.outs, found, strict=True)):
            if tensor.name in self.values:
                raise DescError(f"{name}: tensor {tensor.name!r} is defined twice", f"{path}.output_desc[{place}]")
            self.values[tensor.name] = value

    def assign(self, operation: Operation, args: tuple[Value, ...], path: str) -> tuple[Value, ...]:
        """``Assign(target, source)`` gives the source, ``InplaceAssign(target, source, result)`` its third operand."""
        target = operation.args[0]
        given = next((value for value in self.stored if value.node.name == target.name), self.values.get(target.name))
        if given is None or given.op is not PARAMETER:
            raise DescError(
                f"{operation.name} writes to {target.name!r}, which is no input", f"{path}.input_desc[0][0]"
            )
        result, is_inplace = operation.out, operation.op is INPLACE_ASSIGN
        label = f"{result.name}_stored" if is_inplace else result.name
        stored = self.made(Node(ASSIGN, (given, args[1]), operation.attrs, given.node.types, label)).out
        self.stored[given] = self.values[target.name] = stored
        value = args[2] if is_inplace else stored
        if value.type == result.type:
            return (value,)
        return self.made(Node(RESHAPE, (value,), Attrs(), (result.type,), f"{result.name}_shaped")).outs

    def made(self, node: Node) -> Node:
        """An operator, in its place."""
        self.operators.append(node)
        return node

    def read(self, tensor: Tensor, path: str, reader: str) -> Value:
        """The value that a name stands for now."""
        found = self.values.get(tensor.name)
        if found is None:
            raise DescError(f"{reader} uses tensor {tensor.name!r} before it is defined", f"{path}.tensor_name")
        if found.shape != tensor.shape:
            raise DescError(f"{tensor.name!r} is {list(found.shape)}, here it is {list(tensor.shape)}", f"{path}.shape")
        if found.dtype != tensor.dtype:
            message = f"{tensor.name!r} is {found.dtype.name}, here it is {tensor.dtype.name}"
            raise DescError(message, f"{path}.data_type")
        return found

    def require_groups(self, document: Document) -> None:
        """Raises DescError where a hint names what is not there."""
        parallel = document.parallel_fusion.sub_graph if document.parallel_fusion else ()
        hints = (("$.buffer_stitch.stitch_op", document.buffer_stitch), ("$.parallel_fusion.sub_graph", parallel))
        for path, groups in hints:
            for place, name in ((f"[{i}][{j}]", n) for i, group in enumerate(groups) for j, n in enumerate(group)):
                if name not in self.values:
                    raise DescError(f"no tensor is named {name!r}", f"{path}{place}")


# ---------------------------------------------------------------- the way back


def tensor_names(desc: KernelDesc) -> Mapping[Value, str]:
    """A name of its own for every value that is no constant: its output's, or its own, with a number where that is taken."""
    names = {value: value.node.name for value in desc.graph.inputs}
    for tensor, value in zip(desc.outputs, desc.results, strict=True):
        if tensor.name not in names.values():
            names.setdefault(value, tensor.name)
    taken = {*names.values(), *(tensor.name for tensor in desc.outputs)}
    for node in desc.operators:
        for value in node.outs:
            if value not in names:
                names[value] = _untaken(value.name, taken)
                taken.add(names[value])
    return names


def _untaken(wish: str, taken: set[str]) -> str:
    number, name = 2, wish
    while name in taken:
        name, number = f"{wish}_{number}", number + 1
    return name


def unlinked(desc: KernelDesc) -> Document:
    """The document of a kernel; ``linked(unlinked(desc)) == desc`` where every output is a value of its own."""
    writer = _Writer(desc, dict(tensor_names(desc)))
    ops = tuple(writer.operations())
    return Document(
        desc.name,
        desc.inputs,
        tuple(map(writer.tensor, desc.results)),
        ops,
        desc.process,
        desc.version,
        desc.target_info,
        desc.buffer_stitch,
        desc.parallel_fusion,
    )


@dataclass
class _Writer:
    """The name that each value has now."""

    desc: KernelDesc
    names: dict[Value, str]

    def operations(self) -> Iterator[Operation]:
        """The operators in order; what an input held is copied before it is assigned to, where it is read later."""
        for place, node in enumerate(self.desc.operators):
            if node.op is ASSIGN and self._is_read_later(node.args[0], place):
                old = self.tensor(node.args[0])
                self.names[node.args[0]] = _untaken(f"{old.name}_before", set(self.names.values()))
                yield Operation(TENSOR_MOVE.name, (old,), (self.tensor(node.args[0]),))
                yield Operation(ASSIGN.name, (old, self.tensor(node.args[1])), (self.tensor(node.out),), node.attrs)
                continue
            declared = node.op if is_declared(node.op) else None
            args, outs = tuple(map(self.tensor, node.args)), tuple(map(self.tensor, node.outs))
            yield Operation(node.op.name, args, outs, node.attrs, declared)

    def _is_read_later(self, value: Value, place: int) -> bool:
        later = self.desc.operators[place + 1 :]
        stays = any(node.op is not ASSIGN and value in node.args for node in later)
        return stays or value in self.desc.results

    def tensor(self, value: Value) -> Tensor:
        """The value as a tensor of a document; a constant carries its number."""
        name = self.names.get(value, value.name)
        return Tensor(name, value.shape, value.dtype, value.layout, number_of(value))
