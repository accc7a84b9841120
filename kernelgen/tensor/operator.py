"""What an operator is: a name, a kind, a type rule, a numpy meaning, and traits; and what one that is applied has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from inspect import Parameter
from types import MappingProxyType
from typing import Any, Literal, Protocol

from kernelgen.system.cached_property import cached_property
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.algebra import ElementRule, ScalarRule
from kernelgen.tensor.types import Attrs, DType, Shape, TensorType


class Kind(IntEnum):
    """The ladder of dependence kinds; fusion patterns compare them with ``<`` and ``max``.

    Source: the pattern types of MindSpore's split model.
    """

    VIRTUAL = 0  # binds names or buffers only: Assign, results of several
    RESHAPE = 1  # same elements in the same order
    ELEMWISE = 2  # one input element per output element
    BROADCAST = 3  # an input element feeds several output elements
    REDUCE = 4  # several input elements feed one output element
    OPAQUE = 5  # anything else

    __hash__ = int.__hash__  # kinds are in sets that are asked often, and that of Enum is a function of Python


InferRule = Callable[[tuple[TensorType, ...], Attrs], tuple[TensorType, ...]]
Meaning = Callable[..., Any]
Held = Callable[[Any, TensorType], object]
REQUIRED = Parameter.empty


def _as_written(value: Any, x: TensorType) -> object:
    return value


class Attribute(NamedTuple):
    """One attribute of an operator, as callers of its Python function write it.

    ``annotation`` says what may be written, ``held(written, type of operand 0)`` is what the operator then holds: by default
    what was written. An attribute is left out where None is written, unless it ``reads_none``, and a ``quiet`` one also where
    it is the default. ``parameter`` is what the function calls it, where that is another name.
    """

    name: str
    annotation: str
    held: Held = _as_written
    default: object = None
    parameter: str = ""
    quiet: bool = False
    reads_none: bool = False

    def hold(self, value: object, x: TensorType) -> object:
        """What the operator holds for a written value; None where the attribute is left out."""
        if value is None and not self.reads_none:
            return None
        held = self.held(value, x)
        return None if self.quiet and held == self.held(self.default, x) else held


class Domain(Enum):
    """The numbers that a function is far from its poles on."""

    NONZERO = "either side of 0"
    POSITIVE = "above 0"
    BELOW_ONE = "between -1 and 1"


class Traits(NamedTuple):
    """What passes ask about an operator besides its type and its meaning; the defaults hold for most.

    ``attribute_operands`` gives the places of constant operands that stand for attributes where AKG writes the operator.
    ``axis_of`` says whether its one attribute ``axis`` counts the dims of operand 0 or of the result, ``""`` when it has none.
    ``predicate``: an element-wise operator whose result is bool. ``moves``: its elements are those of its operands, or
    fixed ones. ``parts_alike``: on complex numbers it treats both parts as one more dim at the end, with the same attributes.
    ``skips_outside``: addresses outside of what they index are left out. ``factors`` are the places of the operands that
    a sum of products multiplies, ``values_of`` the place of the operand whose values the result has.
    ``domain`` is the place of an operand and the numbers that it should be of. ``writes`` are pairs of a result and the operand
    that it is written into, an input of the graph. ``numbers`` is the data type of Python's numbers among the operands, where
    it is not that of the first tensor. ``call`` names the first parameters of its Python function, where these are not the
    operands and then the attributes. ``ordered`` names what it does to other processes, once and in its turn
    (:mod:`kernelgen.tensor.order`); empty for nothing. ``dear``: computing an element costs more than reading it from memory.
    ``seeds`` are the attributes that random numbers start from; where all are 0, each run draws others.
    """

    attribute_operands: Mapping[int, str] = MappingProxyType({})
    axis_of: Literal["", "operand", "result"] = ""
    predicate: bool = False
    moves: bool = False
    parts_alike: bool = False
    skips_outside: bool = False
    factors: tuple[int, ...] = ()
    values_of: int = 0
    domain: tuple[int, Domain] | None = None
    writes: tuple[tuple[int, int], ...] = ()
    numbers: str = ""
    call: tuple[str, ...] = ()
    ordered: str = ""
    dear: bool = False
    seeds: tuple[str, ...] = ()


PLAIN = Traits()


@dataclass(frozen=True, eq=False, repr=False)
class Operator:
    """One primitive operator; the name is MindSpore's.

    ``infer(operand types, attrs)`` gives the result types and raises ``TypeRuleError`` on a misfit.
    ``meaning(*arrays, attrs)`` is the numpy semantics: one array, or a tuple of arrays when there are several results.
    ``arity`` is None for a variadic operator. ``composite`` marks operators that kernels cannot compute themselves:
    an expander may rewrite them, otherwise the host library runs them. ``attributes`` are what ``attrs`` may hold,
    ``indices`` are the places of operands that count or address elements, whatever data type these have.
    ``onnx`` is the operator of ONNX that means the same on the same operands, whose attributes may be spelled differently.
    ``traits`` are the other facts about it, each written once, here.
    ``scalar`` says what one element of an element-wise result is, ``element`` that of any other: with one of them kernels of
    every target compute the operator, also one that is declared outside of this project.
    """

    name: str
    kind: Kind
    arity: int | None
    infer: InferRule
    meaning: Meaning
    commutative: bool = False
    composite: bool = False
    doc: str = ""
    attributes: tuple[Attribute, ...] = ()
    indices: tuple[int, ...] = ()
    traits: Traits = PLAIN
    onnx: str = ""
    scalar: ScalarRule | None = None
    element: ElementRule | None = None

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """The names of the attributes, in the order of the record."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def brings_rule(self) -> bool:
        """Whether it says itself how kernels compute it."""
        return self.scalar is not None or self.element is not None

    def __repr__(self) -> str:
        return f"Operator({self.name})"


class Typed(Protocol):
    """An operand or a result: a value of a graph, a tensor of AKG's JSON, or a mere type."""

    @property
    def shape(self) -> Shape:
        """Its extents."""
        ...

    @property
    def dtype(self) -> DType:
        """Its data type."""
        ...

    @property
    def layout(self) -> str:
        """How its elements lie: ``DefaultFormat``, or a word of AKG's."""
        ...


class Application(Protocol):
    """An operator, its operands and results, and its attributes: what rules about shapes, numbers and meaning ask for.

    A node of a graph is one, and so is an entry of AKG's JSON (:mod:`kernelgen.composite.document`).
    """

    @property
    def op(self) -> Operator:
        """The operator."""
        ...

    @property
    def args(self) -> Sequence[Typed]:
        """The operands."""
        ...

    @property
    def outs(self) -> Sequence[Typed]:
        """The results."""
        ...

    @property
    def out(self) -> Typed:
        """The only result; ``ValueError`` when there are several."""
        ...

    @property
    def attrs(self) -> Attrs:
        """The attributes."""
        ...


class Applied(NamedTuple):
    """An application of types alone: another one on other operands, or into another data type."""

    op: Operator
    args: Sequence[Typed]
    outs: Sequence[Typed]
    attrs: Attrs

    @property
    def out(self) -> Typed:
        """The only result; ``ValueError`` when there are several."""
        (out,) = self.outs
        return out


def giving(node: Application, kind: DType) -> Applied:
    """The application into another data type."""
    return Applied(node.op, node.args, (TensorType(node.out.shape, kind, node.out.layout),), node.attrs)


def _no_operands(operands: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    raise TypeError("leaves and fused nodes carry their types; they are not inferred")


def _no_meaning(*arrays: object, attrs: Attrs) -> object:
    raise TypeError("leaves and fused nodes are evaluated by kernelgen.tensor.evaluation.evaluate")


PARAMETER = Operator("Parameter", Kind.VIRTUAL, 0, _no_operands, _no_meaning, doc="An input of the graph.")
CONSTANT = Operator(
    "Constant", Kind.VIRTUAL, 0, _no_operands, _no_meaning, doc="A tensor known when the graph is built."
)
FUSED = Operator("Fused", Kind.OPAQUE, None, _no_operands, _no_meaning, doc="One kernel; `body` is what it computes.")
LEAVES = frozenset({PARAMETER, CONSTANT})


@dataclass(frozen=True)
class Inferred:
    """What type rules have inferred: functions of types and attributes, which are asked the same again and again."""

    _known: dict[object, tuple[TensorType, ...]] = field(default_factory=dict)

    def of(self, op: Operator, types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
        """The result types of ``op`` on operands of these ``types`` with ``attrs``, which count as text, for 1 == True.

        Raises ``TypeRuleError`` where they do not fit.
        """
        key = (op, types, attrs.text)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = op.infer(types, attrs)
        return found
