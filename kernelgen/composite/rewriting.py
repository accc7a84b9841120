"""One walk over the operators of a kernel: what each becomes, in order, and what stands for each old value.

A pass keeps, changes, replaces or leaves out one operator after the other. What no output, update or hint needs afterwards is
dropped, and a walk that has changed nothing gives back the kernel that it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.composite.description import KernelDesc
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import TensorType

NONE = Attrs()


@dataclass
class Rewriting:
    """``found`` holds the values that stand for others, ``operators`` what was kept and made so far."""

    kernel: KernelDesc
    stem: str = "step"
    found: dict[Value, Value] = field(default_factory=dict[Value, Value])
    operators: list[Node] = field(default_factory=list[Node])

    def __post_init__(self) -> None:
        self._names: Iterator[str] | None = None

    def args(self, node: Node) -> tuple[Value, ...]:
        """What the operands of an old operator have become."""
        return tuple([self.found.get(value, value) for value in node.args]) if self.found else node.args

    def now(self, value: Value) -> Value:
        """What an old value has become."""
        return self.found.get(value, value)

    def becomes(self, old: Value, new: Value) -> None:
        """Lets a value stand for an old one."""
        if old != new:
            self.found[old] = new

    def keep(
        self,
        node: Node,
        args: tuple[Value, ...] | None = None,
        *,
        op: Operator | None = None,
        attrs: Attrs | None = None,
        types: tuple[TensorType, ...] | None = None,
        name: str = "",
    ) -> Node:
        """``node`` over what its operands have become, or ``args``, with other ``op``, ``attrs``, ``types`` or ``name``."""
        args = self.args(node) if args is None else args
        op, types, name = op or node.op, types or node.types, name or node.name
        # True equals 1 and (1,) does not equal 1: the text tells apart what a comparison of values does not
        attrs = node.attrs if attrs is None or attrs.text == node.attrs.text else attrs
        same = args == node.args and op is node.op and attrs is node.attrs and types == node.types and name == node.name
        made = node if same else Node(op, args, attrs, types, name)
        self.operators.append(made)
        if not same:
            self.found.update(zip(node.outs, made.outs, strict=True))
        return made

    def make(
        self, op: Operator, args: Iterable[Value], type_: TensorType, attrs: Attrs = NONE, name: str = ""
    ) -> Value:
        """The result of ``op`` on ``args``, of ``type_`` and with ``attrs``, under ``name`` or under the next fresh one."""
        made = Node(op, tuple(args), attrs, (type_,), name or self.fresh())
        self.operators.append(made)
        return made.out

    def fresh(self) -> str:
        """``stem_0, stem_1, ...`` without the names that are in use."""
        if self._names is None:
            self._names = fresh_names(self.kernel, self.stem)
        return next(self._names)

    def done(self, inputs: Sequence[Value] = ()) -> KernelDesc:
        """The kernel after, of other inputs where some are given; the same one where nothing has changed."""
        graph = self.kernel.graph
        outputs = tuple([self.found.get(value, value) for value in graph.outputs])
        operators = tuple(self._needed(outputs))
        if operators == self.kernel.operators and outputs == graph.outputs and not inputs:
            return self.kernel
        after = replace(graph, inputs=tuple(inputs) or graph.inputs, outputs=outputs, results=graph.output_names)
        return replace(self.kernel, graph=after, steps=operators)

    def _needed(self, outputs: Iterable[Value]) -> list[Node]:
        needed, hinted = {value.node for value in outputs}, self.kernel.hinted
        found: list[Node] = []
        for node in reversed(self.operators):
            if node in needed or (hinted and any(value.name in hinted for value in node.outs)):
                found.append(node)
                needed.update([value.node for value in node.args])
        return found[::-1]


def fresh_names(kernel: KernelDesc, stem: str) -> Iterator[str]:
    """``stem_0, stem_1, ...`` without the names that are in use."""
    nodes = (*kernel.operators, *(value.node for value in kernel.graph.inputs))
    taken = {value.name for node in nodes for value in node.outs} | set(kernel.graph.results)
    number = 0
    while True:
        if (name := f"{stem}_{number}") not in taken:
            yield name
        number += 1


def readers(kernel: KernelDesc) -> dict[Value, list[Node]]:
    """Value -> the operators that read it, in order."""
    found: dict[Value, list[Node]] = {}
    for node in kernel.operators:
        for value in dict.fromkeys(node.args):
            found.setdefault(value, []).append(node)
    return found


def kept_values(kernel: KernelDesc) -> frozenset[Value]:
    """The values that callers or hints know by name: outputs, and members of stitched or parallel groups."""
    hinted = kernel.hinted
    named = (v for node in kernel.operators for v in node.outs if v.name in hinted) if hinted else ()
    return frozenset({*kernel.results, *named})
