"""The invariants of a nest, numbered. A pass or a builder that breaks one is wrong; targets rely on all of them.

1. Variables and size symbols are bound where they are used, and never bound twice in one scope.
2. A Let is read only after it, in its block or inside; its name is unique in the nest.
3. Buffers are arguments, or locals read and written only in the block of their Alloc; names are unique.
4. An element has as many indices as its buffer has dims.
5. A scalar function exists, has the right number of operands, of one dtype, and the right result.
6. Stored and accumulated values have the buffer's dtype; inputs are never written.
7. Vector loops have no loop inside.
8. Shapes of locals are numbers or polynomials over the size symbols.
9. There are argument shapes for all buffers, or for all but the workspaces at the end, or none; sizes agree.
10. An interleaved loop holds bindings and, last, one vector loop.
11. A place that data decides is a bound integer, and stands in an access.
12. A buffer that the caller does not fill is stored to before it is accumulated into.
13. A grid stands at the top level, beside grids only; its block and thread indices are bound inside it alone.
14. All threads of a block come to a barrier, all lanes of a warp to a combination: neither stands under a condition on
    a thread index or in a thread loop.
15. What is private or shared is made in a grid; a combination meets a private buffer, its width is a power of two <= 32.
16. Fragments are private u32; they are loaded from shared 16-bit numbers, and multiplied into private f32.
17. Copies that go on by themselves are from global to shared memory.
18. A preparation reads constants alone, and what it writes are inputs of the nest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

from kernelgen.errors import NestError
from kernelgen.nest import nodes as n
from kernelgen.nest.index import is_by_data, values, variables
from kernelgen.nest.scalars import REDUCTIONS, SCALARS, Result
from kernelgen.nest.text import show_expression, show_statement
from kernelgen.nest.walk import statements, vector_loop_of
from kernelgen.tensor.dims import product, symbols_of
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, UINT32, DType


def verify(nest: n.Nest) -> None:
    """Raises ``NestError`` with the number of the broken invariant and the statement."""
    if nest.preparation is not None:
        verify(nest.preparation)
        _check_prepared(nest, nest.preparation)
    _check_names(nest)
    _check_shapes(nest)
    _check_grids(nest)
    scope = _Scope(frozenset(nest.symbols), frozenset(nest.buffers), {})
    _block(nest.body, scope, nest)
    _check_starts(nest)


@dataclass(frozen=True)
class _Scope:
    variables: frozenset[str]
    buffers: frozenset[n.Buffer]
    bindings: dict[str, DType]


def _broken(number: int, message: str, where: n.Statement | None = None) -> NoReturn:
    place = f" in `{show_statement(where).splitlines()[0]}`" if where is not None else ""
    raise NestError(f"invariant {number}: {message}{place}")


def _check_grids(nest: n.Nest) -> None:
    grids = [part for part in nest.body.statements if isinstance(part, n.Grid)]
    inside = sum(1 for part in statements(nest.body) if isinstance(part, n.Grid))
    if grids and (len(grids) != len(nest.body.statements) or inside != len(grids)):
        _broken(13, "a grid stands beside or inside something else")
    for grid in grids:
        for met in _meetings(grid.body, apart=False):
            _broken(14, "not all threads come to a meeting", met)


def _meetings(part: n.Statement, apart: bool) -> Iterator[n.Statement]:
    """The barriers and combinations that some threads of a block go past."""
    match part:
        case n.Sync() if apart:
            yield part
        case n.Combine() | n.LoadFragments() | n.MultiplyFragments() if apart:
            yield part
        case n.Block(inner):
            for each in inner:
                yield from _meetings(each, apart)
        case n.If(conditions, body):
            yield from _meetings(body, apart or any(_names_a_lane(c) for c in conditions))
        case n.For(kind=kind):
            yield from _meetings(part.body, apart or kind is n.LoopKind.THREAD or _names_a_lane(part))
        case _:
            pass


def _names_a_lane(part: n.Compare | n.For) -> bool:
    sides = (part.left, part.right) if isinstance(part, n.Compare) else (part.lower, part.upper)
    return any(n.THREAD_INDICES[0] in variables(side) for side in sides)


def _check_names(nest: n.Nest) -> None:
    parts = tuple(statements(nest.body))
    lets = [part.name for part in parts if isinstance(part, n.Let)]
    buffers = [b.name for b in nest.buffers] + [part.buffer.name for part in parts if isinstance(part, n.Alloc)]
    for number, kind, names in ((2, "binding", lets), (3, "buffer", buffers)):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            _broken(number, f"{kind} {repeated[0]!r} is made twice")


def _check_shapes(nest: n.Nest) -> None:
    shapes = nest.argument_shapes
    without = nest.buffers[len(shapes) :]
    is_complete = len(shapes) <= len(nest.buffers) and all(b.space is n.Space.WORKSPACE for b in without)
    if shapes and not is_complete:
        _broken(9, f"{len(shapes)} argument shapes for {len(nest.buffers)} buffers")
    for buffer, shape in zip(nest.buffers, shapes, strict=False):
        if product(buffer.shape) != product(shape):
            _broken(9, f"argument shape {list(shape)} has another size than {buffer.name} {list(buffer.shape)}")


def _check_prepared(nest: n.Nest, before: n.Nest) -> None:
    taken = {b.name: replace(b, space=n.Space.OUTPUT) for b in nest.buffers if b.space is n.Space.INPUT}
    for buffer in before.buffers:
        if buffer.space is n.Space.OUTPUT and taken.get(buffer.name) != buffer:
            _broken(18, f"{buffer.name} is prepared and is no such input")
        if buffer.space is not n.Space.OUTPUT and buffer.name not in nest.constants:
            _broken(18, f"{buffer.name} is no constant, and the preparation reads it")


def _check_starts(nest: n.Nest) -> None:
    started = {buffer.name for buffer in nest.buffers if buffer.space in (n.Space.INPUT, n.Space.INOUT)}
    for part in statements(nest.body):
        if isinstance(part, n.Store):
            started.add(part.buffer.name)
        elif isinstance(part, n.Accumulate) and part.buffer.name not in started:
            _broken(12, f"{part.buffer.name} is not started", part)


def _block(block: n.Block, scope: _Scope, nest: n.Nest) -> None:
    for statement in block.statements:
        scope = _statement(statement, scope, nest)


def _statement(statement: n.Statement, scope: _Scope, nest: n.Nest) -> _Scope:
    """Checks one statement; returns the scope of those after it."""
    match statement:
        case n.Block():
            _block(statement, scope, nest)
        case n.For():
            _loop(statement, scope, nest)
        case n.If(conditions, body):
            for condition in conditions:
                _plain_indices((condition.left, condition.right), scope, statement)
            _block(body, scope, nest)
        case n.Let(name, value):
            _expression(value, scope, statement)
            return replace(scope, bindings={**scope.bindings, name: value.dtype})
        case n.Alloc(buffer):
            _local(buffer, nest, statement)
            return replace(scope, buffers=scope.buffers | {buffer})
        case n.Store() | n.Accumulate():
            _write(statement, scope)
        case n.Prefetch(_, place):
            _plain_indices((place,), scope, statement)
        case _:
            return _of_grid(statement, scope, nest)
    return scope


def _of_grid(statement: n.Grid | n.OfGrid, scope: _Scope, nest: n.Nest) -> _Scope:
    match statement:
        case n.Bind(var, index):
            _plain_indices((index,), scope, statement)
            return _with_variable(scope, var, statement)
        case n.Grid(_, blocks, _, body, when):
            _plain_indices((blocks, *(side for each in when for side in (each.left, each.right))), scope, statement)
            inner = scope
            for name in (n.BLOCK_INDEX, *n.THREAD_INDICES):
                inner = _with_variable(inner, name, statement)
            _block(body, inner, nest)
        case n.AsyncCopy(conditions=conditions):
            for condition in conditions:
                _plain_indices((condition.left, condition.right), scope, statement)
            _met(statement, scope)
            if statement.target.space is not n.Space.SHARED or statement.source.space in (
                n.Space.SHARED,
                n.Space.PRIVATE,
            ):
                _broken(17, "a copy that goes on by itself is from global to shared memory", statement)
        case n.Combine() | n.Copy():
            _met(statement, scope)
        case n.LoadFragments() | n.MultiplyFragments():
            _fragments(statement, scope)
        case n.Sync() | n.CommitCopies() | n.AwaitCopies():
            pass
    return scope


def _loop(loop: n.For, scope: _Scope, nest: n.Nest) -> None:
    _plain_indices((loop.lower, loop.upper), scope, loop)
    inner = _with_variable(scope, loop.var, loop)
    if loop.step < 1:
        _broken(1, f"the step is {loop.step}", loop)
    if loop.kind is n.LoopKind.VECTOR and any(isinstance(part, n.For) for part in statements(loop.body)):
        _broken(7, "a vector loop has a loop inside", loop)
    if loop.kind is n.LoopKind.INTERLEAVE and vector_loop_of(loop.body) is None:
        _broken(10, "an interleaved loop is not bindings and one vector loop", loop)
    _block(loop.body, inner, nest)


def _with_variable(scope: _Scope, name: str, where: n.Statement) -> _Scope:
    if name in scope.variables:
        _broken(1, f"variable {name!r} is bound again", where)
    return replace(scope, variables=scope.variables | {name})


def _met(statement: n.Combine | n.Copy | n.AsyncCopy, scope: _Scope) -> None:
    if isinstance(statement, n.Copy | n.AsyncCopy):
        _element(statement.target, statement.to, scope, statement)
        _element(statement.source, statement.start, scope, statement)
        if statement.target.space is n.Space.INPUT or statement.target.dtype != statement.source.dtype:
            _broken(6, f"{statement.source.name} is copied to {statement.target.name}", statement)
        return
    _element(statement.buffer, statement.index, scope, statement)
    if statement.buffer.space is not n.Space.PRIVATE or statement.width not in (1, 2, 4, 8, 16, 32):
        _broken(15, f"{statement.width} threads combine {statement.buffer.name}", statement)


def _fragments(statement: n.OfWarp, scope: _Scope) -> None:
    """Registers are private words of 32 bits; results are float32."""
    if isinstance(statement, n.LoadFragments):
        source, registers, count = statement.source, [statement.target], statement.count
        _element(statement.target, statement.to, scope, statement)
        _element(source, statement.start, scope, statement)
        fits = source.space is n.Space.SHARED and source.dtype.itemsize == 2 and count in (1, 2, 4)
    else:
        registers = [statement.left, statement.right]
        _element(statement.target, statement.to, scope, statement)
        _element(statement.left, statement.left_at, scope, statement)
        _element(statement.right, statement.right_at, scope, statement)
        fits = statement.target.space is n.Space.PRIVATE and statement.target.dtype == FLOAT32
        fits = fits and statement.dtype in (FLOAT16, BFLOAT16)
    if not fits or any(each.space is not n.Space.PRIVATE or each.dtype != UINT32 for each in registers):
        _broken(16, "not the registers, types or memory of fragments", statement)


def _local(buffer: n.Buffer, nest: n.Nest, where: n.Statement) -> None:
    if buffer.space not in (n.Space.LOCAL, n.Space.PRIVATE, n.Space.SHARED):
        _broken(3, f"{buffer.name} is allocated but lives in {buffer.space.value}", where)
    unknown = set(symbols_of(buffer.shape)) - set(nest.symbols)
    if unknown:
        _broken(8, f"the shape of {buffer.name} needs {sorted(unknown)}", where)


def _write(statement: n.Store | n.Accumulate, scope: _Scope) -> None:
    buffer = statement.buffer
    _element(buffer, statement.index, scope, statement)
    _expression(statement.value, scope, statement)
    if buffer.space is n.Space.INPUT:
        _broken(6, f"input {buffer.name} is written", statement)
    if statement.value.dtype != buffer.dtype:
        _broken(6, f"a {statement.value.dtype} goes to {buffer.name} of {buffer.dtype}", statement)
    if isinstance(statement, n.Accumulate) and statement.function not in REDUCTIONS:
        _broken(5, f"{statement.function!r} is no reduction", statement)


def _element(buffer: n.Buffer, index: tuple[n.Index, ...], scope: _Scope, where: n.Statement) -> None:
    if buffer not in scope.buffers:
        _broken(3, f"buffer {buffer.name!r} is not in scope", where)
    if len(index) != len(buffer.shape):
        _broken(4, f"{buffer.name} has {len(buffer.shape)} dims and is addressed by {len(index)} indices", where)
    _indices(index, scope, where)


def _indices(index: tuple[n.Index, ...], scope: _Scope, where: n.Statement) -> None:
    for each in index:
        unbound = variables(each) - scope.variables
        if unbound:
            _broken(1, f"variable {min(unbound)!r} is not bound", where)
        for value in values(each):
            if not (isinstance(value, n.Ref) and value.dtype.is_integer):
                _broken(11, f"`{show_expression(value)}` is no bound integer", where)
            _expression(value, scope, where)


def _plain_indices(index: tuple[n.Index, ...], scope: _Scope, where: n.Statement) -> None:
    _indices(index, scope, where)
    if is_by_data(*index):
        _broken(11, "data decides a bound or a value", where)


def _expression(expr: n.Expr, scope: _Scope, where: n.Statement) -> None:
    match expr:
        case n.Ref(name, dtype):
            if scope.bindings.get(name) != dtype:
                found = f"is a {scope.bindings[name]}" if name in scope.bindings else "is not bound"
                _broken(2, f"{name!r}, read as {dtype}, {found}", where)
        case n.Load(buffer, index):
            _element(buffer, index, scope, where)
        case n.IndexValue(index):
            _plain_indices((index,), scope, where)
        case n.Call():
            _call(expr, where)
            for argument in expr.args:
                _expression(argument, scope, where)
        case _:
            pass


def _call(call: n.Call, where: n.Statement) -> None:
    function = SCALARS.get(call.function)
    if function is None:
        _broken(5, f"there is no scalar function {call.function!r}", where)
    if len(call.args) != function.arity:
        _broken(5, f"{call.function} takes {function.arity} operands, not {len(call.args)}", where)
    operands = [argument.dtype for argument in call.args]
    if call.function == "select" and operands.pop(0) != BOOL:
        _broken(5, f"the condition of `{show_expression(call)}` is no bool", where)
    if len(set(operands)) != 1:
        _broken(5, f"operands of `{show_expression(call)}` are {', '.join(map(str, operands))}", where)
    expected = {Result.SAME: operands[0], Result.BOOL: BOOL, Result.GIVEN: call.dtype}[function.result]
    if call.dtype != expected:
        _broken(5, f"`{show_expression(call)}` is a {expected}, not a {call.dtype}", where)
