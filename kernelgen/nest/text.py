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

from kernelgen.nest import nodes as n
from kernelgen.tensor.dtypes import FLOAT32

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floor_div": "//", "floor_mod": "%",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "logical_and": "and", "logical_or": "or",
}  # fmt: skip
UPDATES = {
    "add": "+=", "mul": "*=", "maximum": "max=", "minimum": "min=", "logical_and": "and=", "logical_or": "or=",
}  # fmt: skip


def show(nest: n.Nest) -> str:
    """The whole nest."""
    symbols = f"[{', '.join(nest.symbols)}]" if nest.symbols else ""
    buffers = ", ".join(f"{buffer.space.value} {show_buffer(buffer)}" for buffer in nest.buffers)
    text = "\n".join([f"nest {nest.name}{symbols}({buffers}) {{", *_indented(_block(nest.body)), "}"]) + "\n"
    return text if nest.preparation is None else f"{show(nest.preparation)}\n{text}"


def show_buffer(buffer: n.Buffer) -> str:
    """``x: f32[64, N]``."""
    return f"{buffer.name}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}]"


def show_statement(statement: n.Statement) -> str:
    """A statement and all inside."""
    return "\n".join(_statement(statement))


def show_expression(expr: n.Expr) -> str:
    """A scalar expression; nested infix operations have parentheses."""
    match expr:
        case n.Literal(value, dtype):
            text = str(value).lower() if isinstance(value, bool) else repr(value)
            return text if dtype == FLOAT32 else f"{text}:{dtype}"
        case n.Load(buffer, index):
            return _element(buffer, index)
        case n.Ref(name):
            return name
        case n.IndexValue(index, dtype):
            return f"[{show_index(index)}]:{dtype}"
        case n.Call("cast", (operand,), dtype):
            return f"cast<{dtype}>({show_expression(operand)})"
        case n.Call(function, (left, right)) if function in INFIX:
            return f"{_operand(left)} {INFIX[function]} {_operand(right)}"
        case n.Call(function, args):
            return f"{function}({', '.join(map(show_expression, args))})"


def show_index(index: n.Index) -> str:
    """An index expression; nested infix operations have parentheses, but for sums and products in sums."""
    match index:
        case n.Num(value):
            return str(value)
        case n.Var(name):
            return name
        case n.ValueIndex(value):
            return f"@{_operand(value)}"
        case n.IndexBinary(n.IndexOp.MIN | n.IndexOp.MAX as op, left, right):
            return f"{op.value}({show_index(left)}, {show_index(right)})"
        case n.IndexBinary(n.IndexOp.ADD, left, n.Num(value)) if value < 0:
            return f"{_term(left)} - {-value}"
        case n.IndexBinary(n.IndexOp.ADD | n.IndexOp.SUB as op, left, right):
            return f"{_term(left)} {op.value} {_factor(right)}"
        case n.IndexBinary(op, left, right):
            return f"{_factor(left)}{op.value}{_factor(right)}"


def _statement(statement: n.Statement) -> list[str]:
    match statement:
        case n.For(var, lower, upper, body, kind, step, threads):
            word = "" if kind is n.LoopKind.SERIAL else f"{kind.value} "
            pace = ("" if step == 1 else f" step {step}") + ("" if threads == 1 else f" over {threads}")
            head = f"{word}for {var} in {show_index(lower)}..{show_index(upper)}{pace} {{"
            return [head, *_indented(_block(body)), "}"]
        case n.If(conditions, body):
            return [f"if {' and '.join(map(_condition, conditions))} {{", *_indented(_block(body)), "}"]
        case n.Let(name, value):
            return [f"let {name}: {value.dtype} = {show_expression(value)}"]
        case n.Store(buffer, index, value):
            return [f"{_element(buffer, index)} = {show_expression(value)}"]
        case n.Accumulate(buffer, index, function, value):
            update = UPDATES.get(function, f"{function}=")
            return [f"{_element(buffer, index)} {update} {show_expression(value)}"]
        case n.Alloc(buffer):
            word = "alloc" if buffer.space is n.Space.LOCAL else f"alloc {buffer.space.value}"
            return [f"{word} {show_buffer(buffer)}"]
        case n.Prefetch(buffer, place, level):
            return [f"prefetch {buffer.name} at {show_index(place)} into cache {level}"]
        case n.Block():
            return ["{", *_indented(_block(statement)), "}"]
        case _:
            return _of_grid(statement)


def _of_grid(statement: n.Grid | n.OfGrid) -> list[str]:
    match statement:
        case n.Grid(name, blocks, threads, body, when):
            where = f" where {' and '.join(map(_condition, when))}" if when else ""
            head = f"grid {name} of {show_index(blocks)} blocks of {' x '.join(map(str, threads))} threads{where} {{"
            return [head, *_indented(_block(body)), "}"]
        case n.Bind(var, index):
            return [f"bind {var} = {show_index(index)}"]
        case n.Sync():
            return ["sync"]
        case n.Combine(buffer, index, function, width):
            update = UPDATES.get(function, f"{function}=")
            return [f"combine {_element(buffer, index)} {update} over {width}"]
        case n.Copy(target, to, source, start, count):
            return [f"copy {count}: {_element(target, to)} = {_element(source, start)}"]
        case n.AsyncCopy(target, to, source, start, count, conditions):
            where = f" where {' and '.join(map(_condition, conditions))}" if conditions else ""
            return [f"async copy {count}: {_element(target, to)} = {_element(source, start)}{where}"]
        case n.CommitCopies():
            return ["commit copies"]
        case n.AwaitCopies(pending):
            return [f"await copies but {pending}"]
        case n.LoadFragments(target, to, source, start, count, transposed):
            word = "transposed fragments" if transposed else "fragments"
            return [f"{word} {count}: {_element(target, to)} = {_element(source, start)}"]
        case n.MultiplyFragments(target, to, left, left_at, right, right_at, dtype):
            factors = f"{_element(left, left_at)} x {_element(right, right_at)}"
            return [f"multiply {dtype}: {_element(target, to)} += {factors}"]


def _block(block: n.Block) -> list[str]:
    return [line for statement in block.statements for line in _statement(statement)]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _element(buffer: n.Buffer, index: tuple[n.Index, ...]) -> str:
    return f"{buffer.name}[{', '.join(map(show_index, index))}]"


def _condition(condition: n.Compare) -> str:
    return f"{show_index(condition.left)} {condition.op} {show_index(condition.right)}"


def _operand(expr: n.Expr) -> str:
    text = show_expression(expr)
    return f"({text})" if isinstance(expr, n.Call) and expr.function in INFIX else text


def _term(index: n.Index) -> str:
    """The left side of a sum: sums and products need no parentheses."""
    return show_index(index)


def _factor(index: n.Index) -> str:
    is_plain = not isinstance(index, n.IndexBinary) or index.op in (n.IndexOp.MIN, n.IndexOp.MAX)
    return show_index(index) if is_plain else f"({show_index(index)})"
