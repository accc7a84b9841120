"""What an expander is, and how one is applied to a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import Category, DType, TensorType, dtype

FLOAT32 = dtype("float32")


@dataclass(frozen=True)
class Declined:
    """An expander does not apply, and why."""

    reason: str


Expansion = Tensor | tuple[Tensor, ...] | Declined
ExpanderFunction = Callable[..., Expansion]


@dataclass(frozen=True)
class Expander:
    """How the operator called ``name`` is made of others: ``function(*operands, attrs=...)``.

    With ``wide`` narrow float operands are cast to float32 before and the results back after, as the operators' own
    meanings compute; without, the function sees them as they are. ``special`` holds other formulas for single targets,
    where the general one would need operators that the target's kernels lack. With ``targets`` the operator is expanded
    on these only. The function is called once for operators that are alike: with the same attributes, and operands of the
    same types, whatever weights they are. With ``with_builder`` it gets the builder as a keyword: an operator without
    operands has no Tensor to record with.
    """

    name: str
    function: ExpanderFunction
    wide: bool = True
    special: Mapping[str, ExpanderFunction] = field(default_factory=dict[str, ExpanderFunction])
    targets: frozenset[str] = frozenset()
    with_builder: bool = False

    @property
    def doc(self) -> str:
        """The formula: the first line of the function's documentation."""
        return (self.function.__doc__ or "").partition("\n")[0]

    def formula(self, target: str) -> ExpanderFunction:
        """The function for a target."""
        return self.special.get(target, self.function)


def expander(
    operator: Operator,
    *,
    wide: bool = True,
    special: Mapping[str, ExpanderFunction] | None = None,
    targets: Iterable[str] = (),
    with_builder: bool = False,
) -> Callable[[ExpanderFunction], Expander]:
    """Declares the expander of an ``operator``: the function below it.

    ``wide`` hands it narrow floats as float32. ``special`` has other functions for some targets, ``targets`` are those
    on which it is expanded (none: all). ``with_builder`` hands it the builder too.
    """
    return lambda function: Expander(
        operator.name, function, wide, dict(special or {}), frozenset(targets), with_builder=with_builder
    )


def expand(
    entry: Expander, node: Node, args: tuple[Value, ...], builder: Builder, target: str = "cpu"
) -> tuple[Value, ...] | Declined:
    """The results of ``node`` over ``args`` by other operators, of exactly the node's types, or why not, by the
    expander ``entry``.

    The operators are recorded with ``builder``; formulas may differ by ``target``.
    """
    if entry.targets and target not in entry.targets:
        return Declined(
            f"{entry.name} is one instruction on {target}; it is expanded on {', '.join(sorted(entry.targets))} only"
        )
    operands = tuple(Tensor(value, builder) for value in args)
    if entry.wide:
        operands = tuple(ops.cast(x, FLOAT32) if is_narrow(x.dtype) else x for x in operands)
    more = {"builder": builder} if entry.with_builder else {}
    found = entry.formula(target)(*operands, attrs=node.attrs, **more)
    if isinstance(found, Declined):
        return found
    results = tuple(_rounded(x, type_) for x, type_ in zip(_as_tuple(found), node.types, strict=True))
    for result, type_ in zip(results, node.types, strict=True):
        if result.type != type_:
            return Declined(f"the expansion is {result.type}, the operator gives {type_}")
    return tuple(result.value for result in results)


def entry_name(node: Node) -> str:
    """The name that a node's expander has: the operator's, with a C before it for arithmetic on complex numbers."""
    on_complex = any(value.type.dtype.category is Category.COMPLEX for value in node.args)
    return f"C{node.op.name}" if on_complex and f"C{node.op.name}" in ops.OPS else node.op.name


def is_narrow(d: DType) -> bool:
    """True for float16 and bfloat16."""
    return d.is_float and d.bits < FLOAT32.bits


def _as_tuple(found: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


def _rounded(x: Tensor, type_: TensorType) -> Tensor:
    """The result in the narrow type that the operator has."""
    return ops.cast(x, type_.dtype) if is_narrow(type_.dtype) and x.dtype == FLOAT32 else x
