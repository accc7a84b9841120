"""One shape for all tensors between which only element-wise operators and reshapes stand.

Before and after::

    a: f32[24] = Reshape(x)
    b: f32[24] = Exp(a)                         b: f32[4, 6] = Exp(x)
    c: f32[4, 6] = Reshape(b)           ->      y: f32[4] = ReduceSum(b) {axis=[1], keep_dims=False}
    y: f32[4] = ReduceSum(c) {axis=[1], keep_dims=False}

Tensors that reshapes and element-wise operators on operands of one shape connect hold their elements in one row-major
order: they are a *family*, and any shape would do for all of them. Shapes matter where a member meets a caller, a
reduction, a transpose, a broadcast or any other operator: there it is *pinned*. The family takes the shape at which most
members are pinned, and a Reshape stays at each of the others, but only if fewer are left than were there before. This
moves reshapes backward to where a value comes from and forward to where it goes in one step. Those at inputs and outputs
that meet nobody else do not count: the arguments can change their shape (:mod:`kernelgen.canonical.argument_shapes`).

Inputs that the kernel updates are in no family: their content depends on when they are read. Source: AKG's reshape
elimination, backward and forward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kernelgen.canonical.rewrite import fresh_names, kept_names, updated_names, with_ops
from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.disjoint_sets import DisjointSets
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape, product
from kernelgen.tensor.operators.shape import RESHAPE


def drop_reshapes(desc: KernelDesc) -> KernelDesc:
    """The description with as few reshapes as one shape for each family allows."""
    count = _inner_reshapes(desc)
    while count:
        families = _Families.of(desc)
        before = families.reshapes(desc)
        trial = _Rewriting(desc, families, frozenset(before))
        trial.run()
        better = frozenset(family for family in before if trial.reshapes[family] < before[family])
        changed = with_ops(desc, _Rewriting(desc, families, better).run())
        fewer = _inner_reshapes(changed)
        if fewer >= count:
            return desc
        desc, count = changed, fewer
    return desc


def _inner_reshapes(desc: KernelDesc) -> int:
    """How many reshapes are left that arguments cannot do without."""
    if not any(op.name == RESHAPE.name for op in desc.ops):
        return 0
    return sum(_Families.of(desc).reshapes(desc).values())


# ---------------------------------------------------------------- families


@dataclass
class _Families:
    """Tensors that may have one shape together, and the shape that each family takes."""

    updated: frozenset[str]
    free: frozenset[str] = frozenset()
    related: DisjointSets[str] = field(default_factory=DisjointSets[str])
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])

    @staticmethod
    def of(desc: KernelDesc) -> _Families:
        families = _Families(updated_names(desc))
        for op in desc.ops:
            for operand in families.relatives(op):
                families.related.join(op.output.name, operand.name)
        families.free = families.free_arguments(desc)
        families.vote(desc)
        return families

    def root(self, name: str) -> str:
        """The name that stands for the family."""
        return self.related.of(name)

    def relatives(self, op: OpDesc) -> tuple[TensorDesc, ...]:
        """The operands that belong to the family of the result; none when the operator needs shapes."""
        if op.name != RESHAPE.name and scalar_rule(op) is None:
            return ()
        named = tuple(t for t in op.inputs if t.value is None and product(t.shape) != 1)
        if product(op.output.shape) == 1 or any(t.name in self.updated for t in named):
            return ()
        if op.name == RESHAPE.name:
            return tuple(t for t in named if t.format == op.output.format and t.dtype == op.output.dtype)
        return named if all(t.shape == op.output.shape for t in named) else ()

    def free_arguments(self, desc: KernelDesc) -> frozenset[str]:
        """The inputs and outputs that no operator outside their family touches."""
        kept = kept_names(desc)
        outside = {t.name for op in desc.ops if not self.relatives(op) for t in (*op.inputs, *op.outputs)}
        inputs = {t.name for t in desc.inputs} - kept - self.updated
        return frozenset((inputs | {t.name for t in desc.outputs} - {t.name for t in desc.inputs}) - outside)

    def vote(self, desc: KernelDesc) -> None:
        """Gives each family the shape at which most of its tensors are pinned, the first one of several."""
        pinned = {t.name: t.shape for t in desc.inputs}
        kept = kept_names(desc)
        for op in desc.ops:
            if self.relatives(op):
                pinned |= {t.name: t.shape for t in op.outputs if t.name in kept}
            else:
                pinned |= {t.name: t.shape for t in (*op.inputs, *op.outputs) if t.value is None}
        for names in (pinned.keys() & self.free, pinned.keys() - self.free):  # the latter decide where there are any
            votes: dict[str, Counter[Shape]] = {}
            for name in (name for name in pinned if name in names):
                votes.setdefault(self.root(name), Counter())[pinned[name]] += 1
            self.shapes |= {root: counted.most_common(1)[0][0] for root, counted in votes.items()}

    def reshapes(self, desc: KernelDesc) -> Counter[str]:
        """How many reshapes each family has, other than those that free arguments can do without."""
        views: dict[str, set[Shape | None]] = {}
        for op in desc.ops:
            for name in (t.name for t in op.inputs if t.value is None):
                views.setdefault(name, set()).add(op.outputs[0].shape if op.name == RESHAPE.name else None)
        found: Counter[str] = Counter()
        for op in desc.ops:
            if op.name == RESHAPE.name and self.relatives(op):
                at_input = op.inputs[0].name in self.free and len(views[op.inputs[0].name]) == 1
                at_output = op.output.name in self.free and op.output.name not in views
                found[self.root(op.output.name)] += not (at_input or at_output)
        return found


# ---------------------------------------------------------------- rewriting


@dataclass
class _Rewriting:
    """One walk over the operators in which the tensors of some families take their family's shape.

    ``common`` gives a member's tensor of the family's shape, ``views`` the tensors of other shapes of such a one; free
    arguments have reshapes that are not counted.
    """

    desc: KernelDesc
    families: _Families
    active: frozenset[str]
    common: dict[str, TensorDesc] = field(default_factory=dict[str, TensorDesc])
    views: dict[tuple[str, Shape], TensorDesc] = field(default_factory=dict[tuple[str, Shape], TensorDesc])
    reshapes: Counter[str] = field(default_factory=Counter[str])
    ops: list[OpDesc] = field(default_factory=list[OpDesc])

    def __post_init__(self) -> None:
        self.kept: frozenset[str] = kept_names(self.desc)
        self.names: Iterator[str] = fresh_names(self.desc, "view")

    def run(self) -> list[OpDesc]:
        """The operators after; ``reshapes`` then counts what is left in each active family."""
        for op in self.desc.ops:
            inside = bool(self.families.relatives(op)) and self.family(op.output) is not None
            if not inside:
                self.outside(op)
            elif op.name == RESHAPE.name:
                self.alias(op)
            else:
                self.inside(op)
        return self.ops

    def family(self, tensor: TensorDesc) -> str | None:
        """The active family of a tensor."""
        root = self.families.root(tensor.name)
        return root if tensor.value is None and root in self.active else None

    def outside(self, op: OpDesc) -> None:
        """An operator that needs the shapes that it was written with."""
        inputs = tuple(t if self.family(t) is None else self.pinned(t) for t in op.inputs)
        same = all(new is old for new, old in zip(inputs, op.inputs, strict=True))
        self.ops.append(op if same else replace(op, inputs=inputs))

    def alias(self, op: OpDesc) -> None:
        """A Reshape inside a family: the result is the operand."""
        found = self.in_common(op.inputs[0])
        self.common[op.output.name] = found
        if op.output.name in self.kept:
            self.define(op.output, found, op.output)

    def inside(self, op: OpDesc) -> None:
        """An element-wise operator in the family's shape."""
        inputs = tuple(t if self.family(t) is None else self.in_common(t) for t in op.inputs)
        result, shape = op.output, self.shape(op.output)
        common = result
        if result.shape != shape:
            name = next(self.names) if result.name in self.kept else result.name
            common = replace(result, name=name, shape=shape)
        self.common[result.name] = common
        self.ops.append(replace(op, inputs=inputs, outputs=(common,)))
        if common is not result and result.name in self.kept:
            self.define(result, common, result)

    def shape(self, member: TensorDesc) -> Shape:
        return self.families.shapes.get(self.families.root(member.name), member.shape)

    def in_common(self, member: TensorDesc) -> TensorDesc:
        """A member in the family's shape; one that comes from outside is reshaped when it is first needed."""
        found = self.common.get(member.name)
        if found is None:
            found = member
            if member.shape != self.shape(member):
                found = replace(member, name=next(self.names), shape=self.shape(member))
                self.define(found, member, member, costs=member.name not in self.families.free)
                self.views[found.name, member.shape] = member
            self.common[member.name] = found
        return found

    def pinned(self, member: TensorDesc) -> TensorDesc:
        """A member in the shape that it was written with."""
        found = self.common.get(member.name)
        if found is None or found.shape == member.shape:
            return found or member
        view = self.views.get((found.name, member.shape))
        if view is None:
            view = replace(member, name=next(self.names))
            self.define(view, found, member)
        return view

    def define(self, result: TensorDesc, source: TensorDesc, member: TensorDesc, costs: bool = True) -> None:
        """Appends a Reshape for a member; it becomes the view for later readers of the source in that shape."""
        self.ops.append(OpDesc(RESHAPE.name, (source,), (result,), Attrs()))
        if result.name in self.families.free:
            return
        self.reshapes[self.families.root(member.name)] += costs
        self.views.setdefault((source.name, result.shape), result)
