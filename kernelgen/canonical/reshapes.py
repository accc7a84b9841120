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

Inputs that the kernel updates are in no family: callers' buffers have the shape that they have. Source: AKG's reshape
elimination, backward and forward.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting, kept_values
from kernelgen.composite.scalar_rules import scalar_rule
from kernelgen.disjoint_sets import DisjointSets
from kernelgen.tensor.dims import Shape, product
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.shape import RESHAPE


def drop_reshapes(desc: KernelDesc) -> KernelDesc:
    """The description with as few reshapes as one shape for each family allows."""
    count = _inner_reshapes(desc)
    while count:
        families = _Families.of(desc)
        before = families.reshapes(desc)
        trial = _Reshaping(desc, families, frozenset(before))
        trial.run()
        better = frozenset(family for family in before if trial.reshapes[family] < before[family])
        changed = _Reshaping(desc, families, better).run()
        fewer = _inner_reshapes(changed)
        if fewer >= count:
            return desc
        desc, count = changed, fewer
    return desc


def _inner_reshapes(desc: KernelDesc) -> int:
    """How many reshapes are left that arguments cannot do without."""
    if not any(node.op is RESHAPE for node in desc.operators):
        return 0
    return sum(_Families.of(desc).reshapes(desc).values())


# ---------------------------------------------------------------- families


@dataclass
class _Families:
    """Values that may have one shape together, and the shape that each family takes."""

    updated: frozenset[Value]
    free: frozenset[Value] = frozenset()
    related: DisjointSets[Value] = field(default_factory=DisjointSets[Value])
    shapes: dict[Value, Shape] = field(default_factory=dict[Value, Shape])

    @staticmethod
    def of(desc: KernelDesc) -> _Families:
        families = _Families(frozenset(desc.graph.inputs[place] for place in desc.updated_inputs))
        for node in desc.operators:
            for operand in families.relatives(node):
                families.related.join(node.out, operand)
        families.free = families.free_arguments(desc)
        families.vote(desc)
        return families

    def root(self, value: Value) -> Value:
        """The value that stands for the family."""
        return self.related.of(value)

    def relatives(self, node: Node) -> tuple[Value, ...]:
        """The operands that belong to the family of the result; none when the operator needs shapes."""
        if node.op is not RESHAPE and scalar_rule(node) is None:
            return ()
        operands = tuple(v for v in node.args if v.constant is None and product(v.shape) != 1)
        if product(node.out.shape) == 1 or any(v in self.updated for v in operands):
            return ()
        if node.op is RESHAPE:
            return tuple(v for v in operands if v.layout == node.out.layout and v.dtype == node.out.dtype)
        return operands if all(v.shape == node.out.shape for v in operands) else ()

    def free_arguments(self, desc: KernelDesc) -> frozenset[Value]:
        """The inputs and outputs that no operator outside their family touches."""
        given, results = set(desc.graph.inputs), set(desc.results)
        outside = {v for node in desc.operators if not self.relatives(node) for v in (*node.args, *node.outs)}
        inputs = given - kept_values(desc) - self.updated
        return frozenset((inputs | (results - given)) - outside)

    def vote(self, desc: KernelDesc) -> None:
        """Gives each family the shape at which most of its values are pinned, the first one of several."""
        pinned = dict.fromkeys(desc.graph.inputs)
        kept = kept_values(desc)
        for node in desc.operators:
            if self.relatives(node):
                pinned |= dict.fromkeys(v for v in node.outs if v in kept)
            else:
                pinned |= dict.fromkeys(v for v in (*node.args, *node.outs) if v.constant is None)
        for among in (pinned.keys() & self.free, pinned.keys() - self.free):  # the latter decide where there are any
            votes: dict[Value, Counter[Shape]] = {}
            for value in (value for value in pinned if value in among):
                votes.setdefault(self.root(value), Counter())[value.shape] += 1
            self.shapes |= {root: counted.most_common(1)[0][0] for root, counted in votes.items()}

    def reshapes(self, desc: KernelDesc) -> Counter[Value]:
        """How many reshapes each family has, other than those that free arguments can do without."""
        views: dict[Value, set[Shape | None]] = {}
        for node in desc.operators:
            for value in node.args:
                views.setdefault(value, set()).add(node.outs[0].shape if node.op is RESHAPE else None)
        found: Counter[Value] = Counter()
        for node in desc.operators:
            if node.op is RESHAPE and self.relatives(node):
                at_input = node.args[0] in self.free and len(views[node.args[0]]) == 1
                at_output = node.out in self.free and node.out not in views
                found[self.root(node.out)] += not (at_input or at_output)
        return found


# ---------------------------------------------------------------- rewriting


@dataclass
class _Reshaping:
    """One walk over the operators in which the values of some families take their family's shape.

    ``common`` gives what a member has become in the family's shape, ``views`` the same in other shapes; free arguments have
    reshapes that are not counted.
    """

    desc: KernelDesc
    families: _Families
    active: frozenset[Value]
    common: dict[Value, Value] = field(default_factory=dict[Value, Value])
    views: dict[tuple[Value, Shape], Value] = field(default_factory=dict[tuple[Value, Shape], Value])
    reshapes: Counter[Value] = field(default_factory=Counter[Value])

    def __post_init__(self) -> None:
        self.kept: frozenset[Value] = kept_values(self.desc)
        self.walk = Rewriting(self.desc, "view")

    def run(self) -> KernelDesc:
        """The kernel after; ``reshapes`` then counts what is left in each active family."""
        for node in self.desc.operators:
            inside = bool(self.families.relatives(node)) and self.is_member(node.out)
            if not inside:
                self.walk.keep(node, tuple(map(self.pinned, node.args)))
            elif node.op is RESHAPE:
                self.alias(node)
            else:
                self.inside(node)
        return self.walk.done()

    def is_member(self, value: Value) -> bool:
        """Whether a value is in an active family."""
        return value.constant is None and self.families.root(value) in self.active

    def alias(self, node: Node) -> None:
        """A Reshape inside a family: the result is the operand."""
        self.common[node.out] = found = self.in_common(node.args[0])
        if node.out in self.kept:
            self.define_kept(node.out, found)

    def inside(self, node: Node) -> None:
        """An element-wise operator in the family's shape."""
        args, shape = tuple(map(self.in_common, node.args)), self.shape(node.out)
        if node.out.shape == shape:
            self.common[node.out] = self.walk.keep(node, args).out
            return
        is_kept = node.out in self.kept
        type_ = node.out.type.of_shape(shape)
        common = self.walk.make(node.op, args, type_, node.attrs, "" if is_kept else node.name)
        self.common[node.out] = common
        if is_kept:
            self.define_kept(node.out, common)

    def shape(self, member: Value) -> Shape:
        return self.families.shapes.get(self.families.root(member), member.shape)

    def in_common(self, member: Value) -> Value:
        """A member in the family's shape; one that comes from outside is reshaped when it is first needed."""
        if not self.is_member(member):
            return self.walk.now(member)
        found = self.common.get(member)
        if found is None:
            found = now = self.walk.now(member)
            if member.shape != self.shape(member):
                found = self.define(member, self.shape(member), now, costs=member not in self.families.free)
                self.views[found, member.shape] = now
            self.common[member] = found
        return found

    def pinned(self, member: Value) -> Value:
        """A member in the shape that it was written with."""
        found = self.common.get(member) if self.is_member(member) else None
        if found is None or found.shape == member.shape:
            return found or self.walk.now(member)
        return self.views.get((found, member.shape)) or self.define(member, member.shape, found)

    def define(self, member: Value, shape: Shape, source: Value, costs: bool = True, name: str = "") -> Value:
        """Appends a Reshape for a member; it becomes the view for later readers of the source in that shape."""
        view = self.walk.make(RESHAPE, (source,), member.type.of_shape(shape), name=name)
        self.reshapes[self.families.root(member)] += costs
        self.views.setdefault((source, shape), view)
        return view

    def define_kept(self, member: Value, source: Value) -> None:
        """Gives a member that is known outside the shape that it was written with."""
        if member in self.families.free:
            self.walk.becomes(member, self.walk.make(RESHAPE, (source,), member.type, name=member.name))
        else:
            self.walk.becomes(member, self.define(member, member.shape, source, name=member.name))
