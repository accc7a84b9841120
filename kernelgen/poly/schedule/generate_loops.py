"""Schedule tree -> loop nest, through isl's AST generator.

isl turns the marked tree into loops that visit every instance in schedule order; here its syntax becomes Nest syntax
and each instance becomes the statement's body with the iterators replaced by what isl computed for them.

Loops that a plan unrolls are written out here, turn by turn, where nothing inside but instances asks which turn it is: isl
would compute the sets of each turn anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import islpy as isl

from kernelgen.errors import NestError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Block,
    Compare,
    For,
    If,
    Index,
    IndexOp,
    LoopKind,
    Nest,
    Num,
    Var,
)
from kernelgen.nest.nodes import Statement as NestStatement
from kernelgen.nest.substitute import renamed, substituted
from kernelgen.nest.walk import vector_loop_of
from kernelgen.poly.model.relations import Relations
from kernelgen.poly.model.scop import Scop
from kernelgen.poly.schedule.marks import (
    as_marked_loop,
    is_mark,
    is_unrolled,
    mark_and_variable,
    unrolled_variable,
    with_variable,
)
from kernelgen.poly.schedule.tree import edit_nodes

_AST = isl.ast_node_type
_FOR, _IF = (getattr(_AST, name) for name in ("for_", "if_"))  # the stub lacks the names with an underscore
_EXPR = isl.ast_expr_type
_OP = isl.ast_expr_op_type
_AND = tuple(getattr(_OP, name) for name in ("and_", "and_then"))
_BINARY: dict[object, IndexOp] = {
    _OP.add: IndexOp.ADD,
    _OP.sub: IndexOp.SUB,
    _OP.mul: IndexOp.MUL,
    _OP.min: IndexOp.MIN,
    _OP.max: IndexOp.MAX,
    _OP.div: IndexOp.DIV,
    _OP.pdiv_q: IndexOp.DIV,
    _OP.fdiv_q: IndexOp.DIV,
    _OP.pdiv_r: IndexOp.MOD,
    _OP.zdiv_r: IndexOp.MOD,
}
_COMPARISONS: dict[object, str] = {_OP.le: "<=", _OP.lt: "<", _OP.eq: "==", _OP.ge: ">=", _OP.gt: ">"}


def to_nest(scop: Scop, whole: Relations, schedule: isl.Schedule) -> Nest:
    """The loops of a ``schedule`` of a ``scop``, whose relations are ``whole``.

    Accumulations are not initialised yet and temporaries have their full size.
    """
    build = isl.AstBuild.from_context(whole.domain.params())
    reader = _Reader(scop, {name: ix.from_dim(dim) for dim, name in whole.parameters.items()})
    named = edit_nodes(schedule, is_mark, with_variable)
    syntax = build.node_from_schedule(edit_nodes(named, is_unrolled, as_marked_loop))
    if not reader.can_write_out(syntax):
        syntax = build.node_from_schedule(named)
    body = reader.node(syntax, LoopKind.SERIAL)
    return Nest(scop.name, scop.symbols, scop.buffers, _as_block(body), scop.argument_shapes, constants=scop.constants)


@dataclass
class _Reader:
    """``values`` are those of parameters, and of the variables of loops that are being written out."""

    scop: Scop
    values: dict[str, Index]
    copies: dict[str, int] = field(default_factory=dict)

    def can_write_out(self, syntax: isl.AstNode) -> bool:
        """Whether all loops marked so have a known number of turns, and nothing but instances asks which turn it is."""
        for node in _nodes(syntax):
            variable = unrolled_variable(node.mark_get_id().get_name()) if node.get_type() == _AST.mark else None
            if variable is None:
                continue
            loop = node.mark_get_node()
            if not _is_loop_over(loop, variable):
                if any(_is_loop_over(each, variable) for each in _nodes(loop)):
                    return False
            elif self.turns(loop) is None or any(variable in _asked(each) for each in _nodes(loop.for_get_body())):
                return False
        return True

    def turns(self, loop: isl.AstNode) -> range | None:
        """What a loop adds to its first value, turn by turn; None where nobody knows how many turns there are."""
        lower, upper, step = self.bounds(loop)
        count = ix.to_dim(ix.subtract(upper, lower))
        return range(0, count, step) if isinstance(count, int) else None

    def written_out(self, loop: isl.AstNode) -> Block:
        """The body for each turn of a loop."""
        name = loop.for_get_iterator().get_id().get_name()
        lower, turns, parts = self.bounds(loop)[0], self.turns(loop), list[NestStatement]()
        for turn in turns or ():
            self.values[name] = ix.add(lower, Num(turn))
            parts.append(self.node(loop.for_get_body(), LoopKind.SERIAL))
        del self.values[name]
        return _as_block(Block(tuple(parts)))

    def bounds(self, loop: isl.AstNode) -> tuple[Index, Index, int]:
        """The first value of a loop, what all are less than, and the step between them."""
        condition = loop.for_get_cond()
        upper = self.expression(condition.get_op_arg(1))
        if condition.get_op_type() == _OP.le:
            upper = ix.add(upper, Num(1))
        step = loop.for_get_inc().get_val().get_num_si()
        return self.expression(loop.for_get_init()), _distributed(upper), step

    def node(self, node: isl.AstNode, kind: LoopKind) -> NestStatement:
        if node.get_type() == _FOR:
            return self.loop(node, kind)
        if node.get_type() == _IF:
            return self.guarded(node)
        match node.get_type():
            case _AST.block:
                return Block(tuple([self.node(child, LoopKind.SERIAL) for child in _children(node)]))
            case _AST.mark:
                return self.marked(node)
            case _AST.user:
                return self.instance(node.user_get_expr())
            case other:
                raise NestError(f"unexpected node of type {other} in the schedule's syntax tree")

    def marked(self, node: isl.AstNode) -> NestStatement:
        """A mark is the kind of the loop below; a thread loop's also says how wide it is.

        isl leaves out a loop whose variable has one value: then the mark stands above another one, of which it says nothing.
        """
        name, below = node.mark_get_id().get_name(), node.mark_get_node()
        if unrolled := unrolled_variable(name):
            return self.written_out(below) if _is_loop_over(below, unrolled) else self.node(below, LoopKind.SERIAL)
        mark, variable = mark_and_variable(name)
        if below.get_type() == _FOR and below.for_get_iterator().get_id().get_name() != variable:
            return self.node(below, LoopKind.SERIAL)
        found = self.node(below, mark.kind)
        return replace(found, threads=mark.width) if isinstance(found, For) else found

    def guarded(self, node: isl.AstNode) -> NestStatement:
        conditions = self.conditions(node.if_get_cond())
        then = If(conditions, _as_block(self.node(node.if_get_then_node(), LoopKind.SERIAL)))
        if not node.if_has_else_node():
            return then
        otherwise = node.if_get_else_node()  # read for each condition: a name is bound once in a nest
        branches = (If(each, _as_block(self.node(otherwise, LoopKind.SERIAL))) for each in _otherwise(conditions))
        return Block((then, *branches))

    def loop(self, node: isl.AstNode, kind: LoopKind) -> NestStatement:
        name = node.for_get_iterator().get_id().get_name()
        body = _as_block(self.node(node.for_get_body(), LoopKind.SERIAL))
        if node.for_is_degenerate():  # a loop that runs once is its body at that value
            return substituted(body, {name: self.expression(node.for_get_init())})
        lower, upper, step = self.bounds(node)
        if kind is LoopKind.INTERLEAVE and vector_loop_of(body) is None:  # it ran once, or isl took it apart
            kind = LoopKind.SERIAL
        return For(name, lower, upper, body, kind, step)

    def conditions(self, expr: isl.AstExpr) -> tuple[Compare, ...]:
        op: object = expr.get_op_type()  # the stub calls it an int
        if op in _AND:
            return tuple(c for k in range(expr.get_op_n_arg()) for c in self.conditions(expr.get_op_arg(k)))
        if op not in _COMPARISONS:
            raise NestError(f"unsupported guard {expr.to_C_str()} in the schedule's syntax tree")
        left, right = self.expression(expr.get_op_arg(0)), self.expression(expr.get_op_arg(1))
        text = _COMPARISONS[op]
        if text in (">", ">="):
            return (Compare("<" if text == ">" else "<=", right, left),)
        return (Compare(text, left, right),)

    def expression(self, expr: isl.AstExpr) -> Index:
        if expr.get_type() == _EXPR.int:
            return Num(expr.get_val().get_num_si())
        if expr.get_type() == _EXPR.id:
            name = expr.get_id().get_name()
            return self.values.get(name) or Var(name)
        op: object = expr.get_op_type()
        args = [self.expression(expr.get_op_arg(k)) for k in range(expr.get_op_n_arg())]
        if op == _OP.minus:
            return ix.multiply(args[0], Num(-1))
        if op not in _BINARY:
            raise NestError(f"unsupported index operation in {expr.to_C_str()}")
        result = args[0]
        for arg in args[1:]:
            result = ix.binary(_BINARY[op], result, arg)
        return result

    def instance(self, call: isl.AstExpr) -> Block:
        """``S(e0, e1)`` -> the body of S with its iterators replaced; repeated instances get fresh names."""
        name = call.get_op_arg(0).get_id().get_name()
        statement = next(s for s in self.scop.statements if s.name == name)
        arguments = [self.expression(call.get_op_arg(k + 1)) for k in range(len(statement.iterators))]
        at = {it.name: argument for it, argument in zip(statement.iterators, arguments, strict=True)}
        copy = self.copies.get(name, 0)
        self.copies[name] = copy + 1
        suffix = f"_{copy}" if copy else ""
        return renamed(substituted(Block(statement.body), at), suffix)


def _children(node: isl.AstNode) -> Sequence[isl.AstNode]:
    """The nodes directly inside."""
    match node.get_type():
        case _AST.block:
            parts = node.block_get_children()
            return [parts.get_at(k) for k in range(parts.n_ast_node())]
        case _AST.mark:
            return [node.mark_get_node()]
        case kind if kind == _FOR:
            return [node.for_get_body()]
        case kind if kind == _IF:
            return [node.if_get_then_node(), *([node.if_get_else_node()] if node.if_has_else_node() else ())]
        case _:
            return []


def _nodes(node: isl.AstNode) -> Iterator[isl.AstNode]:
    """The node and all inside."""
    yield node
    for child in _children(node):
        yield from _nodes(child)


def _is_loop_over(node: isl.AstNode, variable: str) -> bool:
    return node.get_type() == _FOR and node.for_get_iterator().get_id().get_name() == variable


def _asked(node: isl.AstNode) -> set[str]:
    """The names that decide how often a loop runs, or whether a branch is taken."""
    if node.get_type() == _FOR:
        return _names(node.for_get_init()) | _names(node.for_get_cond())
    return _names(node.if_get_cond()) if node.get_type() == _IF else set()


def _names(expr: isl.AstExpr) -> set[str]:
    if expr.get_type() == _EXPR.id:
        return {expr.get_id().get_name()}
    if expr.get_type() == _EXPR.int:
        return set()
    return set().union(*[_names(expr.get_op_arg(k)) for k in range(expr.get_op_n_arg())])


def _distributed(upper: Index) -> Index:
    """``min(a, b) + 1`` as ``min(a + 1, b + 1)``: bounds stay sums of simple terms."""
    match upper:
        case ix.IndexBinary(IndexOp.ADD, ix.IndexBinary(IndexOp.MIN, left, right), Num() as one):
            return ix.minimum(_distributed(ix.add(left, one)), _distributed(ix.add(right, one)))
        case ix.IndexBinary(IndexOp.ADD, ix.IndexBinary(IndexOp.ADD, left, Num(a)), Num(b)):
            return ix.add(left, Num(a + b))
        case ix.IndexBinary(IndexOp.ADD, ix.IndexBinary(IndexOp.SUB, left, Num(a)), Num(b)):
            return ix.add(left, Num(b - a))
        case _:
            return upper


def _otherwise(conditions: tuple[Compare, ...]) -> Iterator[tuple[Compare, ...]]:
    """Those of an else branch, of which no two hold together: all that stand before one hold, and it does not.

    ``not (a and b)`` as ``not a``, or ``a and not b``.
    """
    for position, condition in enumerate(conditions):
        for opposite in _opposites(condition):
            yield (*conditions[:position], opposite)


def _opposites(condition: Compare) -> tuple[Compare, ...]:
    """Comparisons of which one holds where the condition does not."""
    left, right = condition.left, condition.right
    if condition.op == "==":
        return Compare("<", left, right), Compare("<", right, left)
    return (Compare("<=" if condition.op == "<" else "<", right, left),)


def _as_block(statement: NestStatement) -> Block:
    """One flat block: nested blocks are spliced in."""
    if not isinstance(statement, Block):
        return Block((statement,))
    flat: list[NestStatement] = []
    for part in statement.statements:
        flat.extend(_as_block(part).statements if isinstance(part, Block) else (part,))
    return Block(tuple(flat))
