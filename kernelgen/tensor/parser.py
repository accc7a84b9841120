"""Reads a graph from text; the grammar is in :mod:`kernelgen.tensor.text`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from kernelgen.errors import TypeRuleError, nearest
from kernelgen.system.bounded_io import UNFIT, json_value
from kernelgen.system.limits import LIMITS
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.derived import FUNCTIONS, Derived
from kernelgen.tensor.graph import CONSTANT, FUSED, PARAMETER, Alias, Graph, Node, Value
from kernelgen.tensor.literals import RESERVED, parse_element
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.scanner import Kind, Scanner, Token
from kernelgen.tensor.types import Attrs, AttrValue, Dim, DType, Sym, TensorType, dtype, parse_dim, parse_type

Item = TypeVar("Item")

Weights = Mapping[str, np.ndarray | ConstantData] | Mapping[str, np.ndarray] | Mapping[str, ConstantData]

_WORDS: Mapping[str, AttrValue] = {"True": True, "False": False, "None": None}


def parse(text: str, ops: Mapping[str, Operator], weights: Weights | None = None) -> Graph:
    """The graph that the text says.

    ``weights`` gives the content of constants printed by digest, arrays or what was checked before; those it lacks stay
    without content.
    Raises ``ParseError`` with line, column and what was expected.
    """
    scanner = Scanner(text)
    try:
        return _parsed(scanner, ops, weights or {})
    except UNFIT as error:  # of an operator's type rule, or a number with too many digits
        scanner.here.fail(f"what stands before cannot be: {error or type(error).__name__}")


def _parsed(scanner: Scanner, ops: Mapping[str, Operator], weights: Weights) -> Graph:
    kernels: dict[str, _Kernel] = {}
    while scanner.at("kernel"):
        start = scanner.take()
        block = _Block(scanner, ops, kernels, weights)
        body = block.read()
        if body.name in kernels:
            start.fail(f"kernel {body.name!r} is defined twice")
        kernels[body.name] = _Kernel(body, block.nodes, block.depth + 1)
    scanner.expect("graph")
    graph = _Block(scanner, ops, kernels, weights).read()
    scanner.expect_kind(Kind.END)
    return graph


@dataclass(frozen=True)
class _Kernel:
    """A body that may be called; how many nodes it stands for, and how deep kernels lie in it."""

    body: Graph
    nodes: int
    depth: int


@dataclass
class _Block:
    """One ``graph`` or ``kernel`` being read."""

    scanner: Scanner
    ops: Mapping[str, Operator]
    kernels: Mapping[str, _Kernel]
    weights: Weights
    values: dict[str, Value] = field(default_factory=dict)
    nodes: int = 0
    depth: int = 0

    def read(self) -> Graph:
        name = self._name()
        self.scanner.expect("(")
        inputs = tuple(self._list(")", self._parameter))
        derived = tuple(self._derived()) if self.scanner.skip("where") else ()
        self.scanner.expect("{")
        while not self.scanner.skip("return"):
            if self.scanner.skip("const"):
                self._constant()
            else:
                self._operator()
        place = self.scanner.here
        outputs = list(self._list("}", lambda: self._output(inputs)))
        aliases = tuple(Alias(i, target) for i, (_, _, target) in enumerate(outputs) if target is not None)
        called = tuple(name for name, _, _ in outputs if name is not None)
        if called and len(called) != len(outputs):
            place.fail(f"{len(called)} of {len(outputs)} outputs have names; all have one, or none")
        return Graph(name, inputs, tuple(value for _, value, _ in outputs), aliases, called, derived=derived)

    def _derived(self) -> Iterator[Derived]:
        """Extents that follow from others."""
        while True:
            name = self._name()
            self.scanner.expect("=")
            is_given = self.scanner.here.kind is Kind.NUMBER
            yield Derived.given(name, self._dim()) if is_given else self._following(name)
            if not self.scanner.skip(","):
                return

    def _following(self, name: str) -> Derived:
        function = self.scanner.here
        if self._name() not in FUNCTIONS:
            function.fail(f"expected one of {', '.join(FUNCTIONS)}, found {function}")
        self.scanner.expect("(")
        first, second = self._dim(), self.scanner.expect(",") and self._dim()
        self.scanner.expect(")")
        return Derived(name, function.text, first, second)

    def _dim(self) -> Dim:
        start = self.scanner.here
        found = self._attribute_value()
        return found if isinstance(found, int | Sym) else start.fail(f"expected an extent, found {start}")

    def _parameter(self) -> Value:
        (place, name), type_ = self._typed_name()
        return self._define(place, name, Node(PARAMETER, (), Attrs(), (type_,), name).out)

    def _constant(self) -> None:
        (place, name), type_ = self._typed_name()
        self.scanner.expect("=")
        if self.scanner.here.kind is Kind.DIGEST:
            data = self._data_by_digest(self.scanner.take(), type_)
        else:
            data = self._data_by_elements(type_)
        self._define(place, name, Node(CONSTANT, (), Attrs(), (type_,), name, data=data).out)

    def _data_by_digest(self, token: Token, type_: TensorType) -> ConstantData:
        digest = token.text.removeprefix("sha256:")
        if digest not in self.weights:
            return ConstantData(digest, None)
        given = self.weights[digest]
        data = given if isinstance(given, ConstantData) else ConstantData.of(given)
        if (
            data.digest != digest
            or data.array is None
            or (data.array.shape, dtype(data.array.dtype)) != (type_.shape, type_.dtype)
        ):
            token.fail(f"the weights given for this digest are other content or not {type_}")
        return data

    def _data_by_elements(self, type_: TensorType) -> ConstantData:
        start = self.scanner.expect("[")
        elements = list(self._list("]", lambda: self._element(type_.dtype)))
        if not type_.is_static or len(elements) != type_.size:
            start.fail(f"{type_} has {type_.size} elements, {len(elements)} are given")
        return ConstantData.of(np.array(elements, type_.dtype.numpy).reshape(tuple(map(int, map(str, type_.shape)))))

    def _operator(self) -> None:
        results = [self._typed_name()]
        while self.scanner.skip(","):
            results.append(self._typed_name())
        self.scanner.expect("=")
        place = self.scanner.here
        name = self._name()
        self.scanner.expect("(")
        operands, attributes = self._arguments()
        types = tuple(type_ for _, type_ in results)
        label = _label([name for (_, name), _ in results])
        node = self._node(place, name, operands, Attrs.of(attributes), types, label)
        for ((at, result), _), value in zip(results, node.outs, strict=True):
            self._define(at, result, value)

    def _node(
        self,
        place: Token,
        name: str,
        operands: tuple[Value, ...],
        attrs: Attrs,
        types: tuple[TensorType, ...],
        label: str,
    ) -> Node:
        """An operator or kernel call whose inferred result types are those the text says."""
        kernel = self.kernels.get(name)
        body = kernel.body if kernel is not None else None
        self._count(place, kernel)
        if body is None and name not in self.ops:
            place.fail(f"unknown operator or kernel {name!r}{nearest(name, [*self.ops, *self.kernels])}")
        given = tuple(value.type for value in operands)
        if body is not None:
            if given != tuple(value.type for value in body.inputs):
                place.fail(f"kernel {name} takes {_types(v.type for v in body.inputs)}, got {_types(given)}")
            inferred = tuple(value.type for value in body.outputs)
        else:
            try:
                inferred = self.ops[name].infer(given, attrs)
            except TypeRuleError as error:
                place.fail(str(error))
        if inferred != types:
            place.fail(f"{name} gives {_types(inferred)}, but the text says {_types(types)}")
        return Node(FUSED if body is not None else self.ops[name], operands, attrs, types, label, body)

    def _count(self, place: Token, kernel: _Kernel | None) -> None:
        """Counts a node with all that it stands for: kernels of kernels would be exponentially many."""
        self.nodes += 1 if kernel is None else kernel.nodes + 1
        self.depth = max(self.depth, 0 if kernel is None else kernel.depth)
        if self.nodes > LIMITS.nodes:
            place.fail(f"with the nodes of all kernels there are more than {LIMITS.nodes}")
        if self.depth > LIMITS.nesting:
            place.fail(f"kernels are nested deeper than {LIMITS.nesting} levels")

    def _arguments(self) -> tuple[tuple[Value, ...], dict[str, AttrValue]]:
        operands: list[Value | tuple[Token, str | None]] = []
        attributes: dict[str, AttrValue] = {}

        def argument() -> None:
            if self.scanner.ahead.text == "=" and self.scanner.here.kind in (Kind.NAME, Kind.STRING):
                place, name = self.scanner.here, self._name()
                self.scanner.expect("=")
                if name in attributes:
                    place.fail(f"attribute {name!r} is given twice")
                attributes[name] = self._attribute_value()
            elif attributes:
                self.scanner.here.fail(f"operands stand before attributes, found {self.scanner.here}")
            else:
                operands.append(self._operand())

        for _ in self._list(")", argument):
            pass
        implied = next((operand.type.dtype.name for operand in operands if isinstance(operand, Value)), None)
        return tuple(x if isinstance(x, Value) else _literal(*x, implied) for x in operands), attributes

    def _operand(self) -> Value | tuple[Token, str | None]:
        """A value by name, or a literal with the data type of its suffix."""
        token = self.scanner.take()
        if token.kind is Kind.NUMBER or (token.kind is Kind.NAME and token.text in ("True", "False")):
            return token, self.scanner.expect_kind(Kind.NAME).text if self.scanner.skip(":") else None
        if token.kind not in (Kind.NAME, Kind.STRING):
            token.fail(f"expected an operand (a name or a number), found {token}")
        name = _plain(token)
        if name not in self.values:
            token.fail(f"{name!r} is not defined{nearest(name, self.values)}")
        return self.values[name]

    def _output(self, inputs: tuple[Value, ...]) -> tuple[str | None, Value, int | None]:
        """Its name, if it has one, the value, and the position of the input whose buffer it is written into."""
        name = None
        if self.scanner.ahead.text == "=":
            name = self._name()
            self.scanner.expect("=")
        operand = self._operand()
        value = operand if isinstance(operand, Value) else _literal(*operand, None)
        if not self.scanner.skip("->"):
            return name, value, None
        token = self.scanner.here
        target = self.values.get(self._name())
        if target not in inputs:
            token.fail(f"{token} is not an input, so no output can be written into it")
        return name, value, inputs.index(target)

    def _attribute_value(self, depth: int = 0) -> AttrValue:
        token = self.scanner.here
        if self.scanner.skip("("):
            if depth >= LIMITS.nesting:
                token.fail(f"nested deeper than {LIMITS.nesting} levels")
            return tuple(self._list(")", lambda: self._attribute_value(depth + 1)))
        if token.kind is Kind.STRING:
            return _plain(self.scanner.take())
        if token.kind is Kind.NAME and token.text in _WORDS:
            return _WORDS[self.scanner.take().text]
        if token.kind is Kind.NUMBER and self.scanner.ahead.text not in ("+", "-", "*"):
            return _number(self.scanner.take())
        return self._polynomial(token)

    def _polynomial(self, start: Token) -> AttrValue:
        parts: list[str] = []
        while self.scanner.here.kind in (Kind.NAME, Kind.NUMBER) or self.scanner.here.text in ("+", "-", "*"):
            parts.append(self.scanner.take().text)
        try:
            return parse_dim(" ".join(parts)) if parts else start.fail(f"expected an attribute value, found {start}")
        except ValueError as error:
            start.fail(f"expected an attribute value: {error}")

    def _element(self, of: DType) -> np.ndarray:
        return _parse_element(self.scanner.expect_kind(Kind.NUMBER, Kind.NAME), of)

    def _typed_name(self) -> tuple[tuple[Token, str], TensorType]:
        place = self.scanner.here
        name = self._name()
        self.scanner.expect(":")
        token = self.scanner.expect_kind(Kind.TYPE)
        try:
            found = parse_type(token.text)
        except ValueError as error:
            token.fail(str(error))
        words = [symbol for symbol in found.symbols if symbol in RESERVED]
        return token.fail(f"the word {words[0]!r} is no extent") if words else ((place, name), found)

    def _name(self) -> str:
        token = self.scanner.expect_kind(Kind.NAME, Kind.STRING)
        if token.kind is Kind.NAME and token.text in RESERVED:
            token.fail(f"expected a name, found the word {token.text!r}; put it in double quotes to use it as a name")
        return _plain(token)

    def _define(self, place: Token, name: str, value: Value) -> Value:
        if name in self.values:
            place.fail(f"{name!r} is defined twice")
        self.values[name] = value
        return value

    def _list(self, closing: str, item: Callable[[], Item]) -> Iterator[Item]:
        """Items between commas up to the closing sign; a comma may stand before it."""
        while not self.scanner.skip(closing):
            yield item()
            if not self.scanner.at(closing):
                self.scanner.expect(",")


def _literal(token: Token, suffix: str | None, implied: str | None) -> Value:
    if suffix is None and implied is None:
        token.fail("there is no named operand to take the data type from; write it behind the number, as in 2.0:f32")
    try:
        of = dtype(suffix or implied or "")
    except ValueError as error:
        token.fail(str(error))
    data = ConstantData.of(_parse_element(token, of))
    return Node(CONSTANT, (), Attrs(), (TensorType((), of),), "c", data=data).out


def _parse_element(token: Token, of: DType) -> np.ndarray:
    try:
        return parse_element(token.text, of)
    except ValueError as error:
        token.fail(str(error))


def _number(token: Token) -> int | float:
    return int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)


def _plain(token: Token) -> str:
    return str(json_value(token.text, token.error)) if token.kind is Kind.STRING else token.text


def _label(names: list[str]) -> str:
    """The node's label from the names of its results: several are ``label_0, label_1, ...``."""
    base = names[0].removesuffix("_0")
    are_numbered = len(names) > 1 and names == [f"{base}_{i}" for i in range(len(names))]
    return base if are_numbered else names[0]


def _types(types: Iterator[TensorType] | tuple[TensorType, ...]) -> str:
    return f"({', '.join(map(str, types))})"
