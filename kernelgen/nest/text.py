"""Nests as text, for dumps and golden tests.

    nest softmax[N](input x: f32[N, 128], output y: f32[N, 128]) {
      parallel for i in 0..N {
        alloc m: f32[]
        m[] = -inf
        vector for j in 0..128 {
          m[] max= x[i, j]
        }
        vector for j in 0..128 {
          let e: f32 = exp(x[i, j] - m[])

Literals and index values of a dtype other than f32 say it: ``2:i32``, ``[i + 1]:i64``; casts do as ``cast<f16>(x)``.
An index that data decides is ``@v0``.
"""

from __future__ import annotations

from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    AsyncCopy,
    AwaitCopies,
    Bind,
    Block,
    Buffer,
    Call,
    Combine,
    CommitCopies,
    Compare,
    Copy,
    Expr,
    For,
    Grid,
    If,
    Index,
    IndexBinary,
    IndexOp,
    IndexValue,
    Let,
    Literal,
    Load,
    LoadFragments,
    LoopKind,
    MultiplyFragments,
    Nest,
    Num,
    OfGrid,
    Ref,
    Space,
    Statement,
    Store,
    Sync,
    ValueIndex,
    Var,
)
from kernelgen.tensor.dtypes import FLOAT32

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floor_div": "//", "floor_mod": "%",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "logical_and": "and", "logical_or": "or",
}  # fmt: skip
UPDATES = {
    "add": "+=", "mul": "*=", "maximum": "max=", "minimum": "min=", "logical_and": "and=", "logical_or": "or=",
}  # fmt: skip


def show(nest: Nest) -> str:
    """The whole nest."""
    symbols = f"[{', '.join(nest.symbols)}]" if nest.symbols else ""
    buffers = ", ".join(f"{buffer.space.value} {show_buffer(buffer)}" for buffer in nest.buffers)
    return "\n".join([f"nest {nest.name}{symbols}({buffers}) {{", *_indented(_block(nest.body)), "}"]) + "\n"


def show_buffer(buffer: Buffer) -> str:
    """``x: f32[64, N]``."""
    return f"{buffer.name}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}]"


def show_statement(statement: Statement) -> str:
    """A statement and all inside."""
    return "\n".join(_statement(statement))


def show_expression(expr: Expr) -> str:
    """A scalar expression; nested infix operations have parentheses."""
    match expr:
        case Literal(value, dtype):
            text = str(value).lower() if isinstance(value, bool) else repr(value)
            return text if dtype == FLOAT32 else f"{text}:{dtype}"
        case Load(buffer, index):
            return _element(buffer, index)
        case Ref(name):
            return name
        case IndexValue(index, dtype):
            return f"[{show_index(index)}]:{dtype}"
        case Call("cast", (operand,), dtype):
            return f"cast<{dtype}>({show_expression(operand)})"
        case Call(function, (left, right)) if function in INFIX:
            return f"{_operand(left)} {INFIX[function]} {_operand(right)}"
        case Call(function, args):
            return f"{function}({', '.join(map(show_expression, args))})"


def show_index(index: Index) -> str:
    """An index expression; nested infix operations have parentheses, but for sums and products in sums."""
    match index:
        case Num(value):
            return str(value)
        case Var(name):
            return name
        case ValueIndex(value):
            return f"@{_operand(value)}"
        case IndexBinary(IndexOp.MIN | IndexOp.MAX as op, left, right):
            return f"{op.value}({show_index(left)}, {show_index(right)})"
        case IndexBinary(IndexOp.ADD, left, Num(value)) if value < 0:
            return f"{_term(left)} - {-value}"
        case IndexBinary(IndexOp.ADD | IndexOp.SUB as op, left, right):
            return f"{_term(left)} {op.value} {_factor(right)}"
        case IndexBinary(op, left, right):
            return f"{_factor(left)}{op.value}{_factor(right)}"


def _statement(statement: Statement) -> list[str]:
    match statement:
        case For(var, lower, upper, body, kind, step, threads):
            word = "" if kind is LoopKind.SERIAL else f"{kind.value} "
            pace = ("" if step == 1 else f" step {step}") + ("" if threads == 1 else f" over {threads}")
            head = f"{word}for {var} in {show_index(lower)}..{show_index(upper)}{pace} {{"
            return [head, *_indented(_block(body)), "}"]
        case If(conditions, body):
            return [f"if {' and '.join(map(_condition, conditions))} {{", *_indented(_block(body)), "}"]
        case Let(name, value):
            return [f"let {name}: {value.dtype} = {show_expression(value)}"]
        case Store(buffer, index, value):
            return [f"{_element(buffer, index)} = {show_expression(value)}"]
        case Accumulate(buffer, index, function, value):
            update = UPDATES.get(function, f"{function}=")
            return [f"{_element(buffer, index)} {update} {show_expression(value)}"]
        case Alloc(buffer):
            word = "alloc" if buffer.space is Space.LOCAL else f"alloc {buffer.space.value}"
            return [f"{word} {show_buffer(buffer)}"]
        case Block():
            return ["{", *_indented(_block(statement)), "}"]
        case _:
            return _of_grid(statement)


def _of_grid(statement: Grid | OfGrid) -> list[str]:
    match statement:
        case Grid(name, blocks, threads, body, when):
            where = f" where {' and '.join(map(_condition, when))}" if when else ""
            head = f"grid {name} of {show_index(blocks)} blocks of {' x '.join(map(str, threads))} threads{where} {{"
            return [head, *_indented(_block(body)), "}"]
        case Bind(var, index):
            return [f"bind {var} = {show_index(index)}"]
        case Sync():
            return ["sync"]
        case Combine(buffer, index, function, width):
            update = UPDATES.get(function, f"{function}=")
            return [f"combine {_element(buffer, index)} {update} over {width}"]
        case Copy(target, to, source, start, count):
            return [f"copy {count}: {_element(target, to)} = {_element(source, start)}"]
        case AsyncCopy(target, to, source, start, count, conditions):
            where = f" where {' and '.join(map(_condition, conditions))}" if conditions else ""
            return [f"async copy {count}: {_element(target, to)} = {_element(source, start)}{where}"]
        case CommitCopies():
            return ["commit copies"]
        case AwaitCopies(pending):
            return [f"await copies but {pending}"]
        case LoadFragments(target, to, source, start, count, transposed):
            word = "transposed fragments" if transposed else "fragments"
            return [f"{word} {count}: {_element(target, to)} = {_element(source, start)}"]
        case MultiplyFragments(target, to, left, left_at, right, right_at, dtype):
            factors = f"{_element(left, left_at)} x {_element(right, right_at)}"
            return [f"multiply {dtype}: {_element(target, to)} += {factors}"]


def _block(block: Block) -> list[str]:
    return [line for statement in block.statements for line in _statement(statement)]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _element(buffer: Buffer, index: tuple[Index, ...]) -> str:
    return f"{buffer.name}[{', '.join(map(show_index, index))}]"


def _condition(condition: Compare) -> str:
    return f"{show_index(condition.left)} {condition.op} {show_index(condition.right)}"


def _operand(expr: Expr) -> str:
    text = show_expression(expr)
    return f"({text})" if isinstance(expr, Call) and expr.function in INFIX else text


def _term(index: Index) -> str:
    """The left side of a sum: sums and products need no parentheses."""
    return show_index(index)


def _factor(index: Index) -> str:
    is_plain = not isinstance(index, IndexBinary) or index.op in (IndexOp.MIN, IndexOp.MAX)
    return show_index(index) if is_plain else f"({show_index(index)})"
