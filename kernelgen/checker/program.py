"""A nest as a Python program that reports every access: the checker's own reading of what nests mean.

for i: y[i] = exp(x[i])     ->     for i0 in trace.loop(0, 8, 1, 'parallel'):
                                       m1.store((i0,), functions[0](m0.load((i0,), 4)), 4)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from kernelgen.checker import terms
from kernelgen.checker.terms import Function
from kernelgen.checker.trace import Memory, Trace
from kernelgen.errors import NestError
from kernelgen.nest import nodes as n
from kernelgen.nest.text import show_statement
from kernelgen.tensor.dims import Dim, Sym
from kernelgen.tensor.dtypes import BOOL

OPERATORS = {n.IndexOp.ADD: "+", n.IndexOp.SUB: "-", n.IndexOp.MUL: "*", n.IndexOp.DIV: "//", n.IndexOp.MOD: "%"}
KNOWN_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "floor_div": "//", "floor_mod": "%", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=", "logical_and": "and", "logical_or": "or",
}  # fmt: skip
"""Functions of indices that are computed, not hashed: the borders of a padded tensor are where its indices say."""
PROMISES = (n.LoopKind.PARALLEL, n.LoopKind.VECTOR, n.LoopKind.INTERLEAVE)

Run = Callable[[Trace, Sequence[Memory], Sequence[int]], None]


@dataclass(frozen=True)
class Program:
    """``run(trace, memories, symbols)``; ``texts`` are the statements by number, ``source`` is what runs."""

    source: str
    texts: tuple[str, ...]
    run: Run


def program(nest: n.Nest, ordered: bool = False) -> Program:
    """The nest as a program. Memories and symbols come in the order of the nest's."""
    writer = _Writer(ordered)
    names = ", ".join(writer.name("m", buffer.name) for buffer in nest.buffers)
    symbols = ", ".join(writer.name("i", symbol) for symbol in nest.symbols)
    head = ["def run(trace, memories, symbols):", f" [{names}] = memories", f" [{symbols}] = symbols"]
    lines = [*head, *(f" {line}" for line in writer.block(nest.body))]
    source = "\n".join(lines) + "\n"
    scope: dict[str, object] = {
        "Memory": Memory,
        "place": terms.place,
        "buffers": writer.buffers,
        "functions": writer.functions,
    }
    exec(compile(source, f"<checked {nest.name}>", "exec"), scope)  # our own text: numbered names and integers only
    return Program(source, tuple(writer.texts), cast(Run, scope["run"]))


@dataclass
class _Writer:
    ordered: bool = False
    names: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    texts: list[str] = field(default_factory=list[str])
    known_names: set[str] = field(default_factory=set[str])
    functions: list[Function] = field(default_factory=list[Function])
    buffers: list[n.Buffer] = field(default_factory=list[n.Buffer])

    def name(self, letter: str, name: str) -> str:
        """A Python name of ours for a name of the nest: m for memories, i for variables, v for bindings."""
        return self.names.setdefault((letter, name), f"{letter}{len(self.names)}")

    def block(self, block: n.Block) -> Iterator[str]:
        """The lines of a block."""
        if not block.statements:
            yield "pass"
        for statement in block.statements:
            yield from self.statement(statement)

    def statement(self, statement: n.Statement) -> Iterator[str]:
        """The lines of a statement."""
        match statement:
            case n.Block():
                yield from self.block(statement)
            case n.For(var, lower, upper, body, kind, step):
                promise = kind.value if kind in PROMISES else ""
                bounds = f"{self.index(lower)}, {self.index(upper)}, {step}, {promise!r}"
                yield f"for {self.name('i', var)} in trace.loop({bounds}):"
                yield from (f" {line}" for line in self.block(body))
            case n.If(conditions, body):
                yield f"if {' and '.join(map(self.condition, conditions))}:"
                yield from (f" {line}" for line in self.block(body))
            case n.Alloc(buffer):
                yield self.allocation(buffer)
            case n.Let() | n.Store() | n.Accumulate():
                self.texts.append(show_statement(statement).splitlines()[0].strip())
                yield self.effect(statement, len(self.texts) - 1)
            case n.Prefetch():
                yield "pass"
            case _:
                raise NestError(
                    f"{type(statement).__name__} stands in nests of a GPU, which this checker does not read"
                )

    def allocation(self, buffer: n.Buffer) -> str:
        """The line that makes a local memory."""
        shape = ", ".join(map(self.dim, buffer.shape))
        self.buffers.append(buffer)
        return f"{self.name('m', buffer.name)} = Memory(trace, buffers[{len(self.buffers) - 1}], [{shape}])"

    def effect(self, statement: n.Let | n.Store | n.Accumulate, number: int) -> str:
        """The line of a statement that computes."""
        if isinstance(statement, n.Let) and (known := self.known(statement.value)) is not None:
            self.known_names.add(statement.name)
            return f"{self.name('v', statement.name)} = {known}"
        value = self.expression(statement.value, number)
        if isinstance(statement, n.Let):
            return f"{self.name('v', statement.name)} = {value}"
        target, index = self.name("m", statement.buffer.name), self.subscript(statement.index)
        if isinstance(statement, n.Store):
            return f"{target}.store({index}, {value}, {number})"
        return f"{target}.accumulate({index}, {statement.function!r}, {value}, {number})"

    def condition(self, condition: n.Compare) -> str:
        """A comparison of indices."""
        return f"{self.index(condition.left)} {condition.op} {self.index(condition.right)}"

    def subscript(self, index: tuple[n.Index, ...]) -> str:
        """A tuple of indices."""
        return f"({''.join(f'{self.index(each)}, ' for each in index)})"

    def dim(self, dim: Dim) -> str:
        """An extent over the size symbols."""
        if not isinstance(dim, Sym):
            return str(dim)
        terms = (
            "*".join([str(factor), *(self.name("i", symbol) for symbol in symbols)]) for symbols, factor in dim.terms
        )
        return " + ".join(terms)

    def index(self, index: n.Index) -> str:
        """An index expression."""
        match index:
            case n.Num(value):
                return str(value)
            case n.Var(name):
                return self.name("i", name)
            case n.IndexBinary(n.IndexOp.MIN | n.IndexOp.MAX as op, left, right):
                return f"{op.value}({self.index(left)}, {self.index(right)})"
            case n.IndexBinary(op, left, right):
                return f"({self.index(left)} {OPERATORS[op]} {self.index(right)})"
            case n.ValueIndex(value):
                return f"place({self.expression(value, -1)})"

    def known(self, expr: n.Expr) -> str | None:
        """The integer or truth value itself, of an expression over indices; None for all others."""
        match expr:
            case n.IndexValue(index):
                return self.index(index)
            case n.Ref(name) if name in self.known_names:
                return self.name("v", name)
            case n.Call("cast", (operand,), kind) if kind.is_integer:
                return self.known(operand)
            case n.Call("logical_not", (operand,)):
                value = self.known(operand)
                return None if value is None else f"(not {value})"
            case n.Call(function, (left, right)) if function in KNOWN_OPERATORS:
                return self.known_pair(KNOWN_OPERATORS[function], left, right)
            case _:
                return None

    def known_pair(self, operator: str, left: n.Expr, right: n.Expr) -> str | None:
        """An operation on two known values, one of which may be a constant."""
        sides = [self.known(left), self.known(right)]
        for place, side in enumerate((left, right)):
            if isinstance(side, n.Literal) and not side.dtype.is_float and sides[1 - place] is not None:
                sides[place] = str(int(side.value))
        return None if None in sides else f"({sides[0]} {operator} {sides[1]})"

    def expression(self, expr: n.Expr, number: int) -> str:
        """A scalar expression as a number that stands for its term."""
        known = None if isinstance(expr, n.IndexValue) else self.known(expr)
        if known is not None:
            return f"(-bool({known}) & {terms.TOP})" if expr.dtype == BOOL else f"({known} & {terms.TOP})"
        match expr:
            case n.Literal(value, kind):
                return str(terms.literal(value, kind))
            case n.IndexValue(index):
                return f"({self.index(index)} & {terms.TOP})"
            case n.Ref(name):
                return self.name("v", name)
            case n.Load(buffer, index):
                return f"{self.name('m', buffer.name)}.load({self.subscript(index)}, {number})"
            case n.Call("cast", (operand,), kind):
                convert = terms.conversion(operand.dtype, kind)
                value = self.expression(operand, number)
                return value if convert is None else f"{self.function(convert)}({value})"
            case n.Call(function, args):
                operands = ", ".join(self.expression(arg, number) for arg in args)
                return f"{self.function(terms.function(function, args[-1].dtype, self.ordered))}({operands})"

    def function(self, function: Function) -> str:
        """The place of a function on terms."""
        self.functions.append(function)
        return f"functions[{len(self.functions) - 1}]"
