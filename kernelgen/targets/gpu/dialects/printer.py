"""Prints a distributed nest as the text of a program: a kernel for each grid.

    extern "C" __global__ void __launch_bounds__(256) scale_0(const float* __restrict__ x, float* __restrict__ y) {
      const int item = blockIdx.x * 256 + threadIdx.x;
      ...

Everything is decided in the nest: here a loop is a loop and a barrier a barrier. Indices are 32-bit integers where all
sizes are known and small enough, else 64-bit ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernelgen.errors import CodegenError
from kernelgen.machines.gpu.device import WARP
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    BLOCK_INDEX,
    THREAD_INDICES,
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
    For,
    Grid,
    If,
    Index,
    Let,
    LoadFragments,
    LoopKind,
    MultiplyFragments,
    Nest,
    Num,
    OfGrid,
    Prefetch,
    Space,
    Statement,
    Store,
    Sync,
    Var,
)
from kernelgen.nest.ranges import Range, range_of
from kernelgen.nest.walk import statements
from kernelgen.system.identifiers import comment
from kernelgen.targets.gpu.dialects.dialect import Dialect, TileInstructions
from kernelgen.targets.gpu.dialects.expression_printer import NARROW, ExpressionPrinter
from kernelgen.targets.gpu.dialects.names import spelled
from kernelgen.targets.gpu.dialects.program import dynamic_places, launch_of, written
from kernelgen.targets.gpu.dialects.scalars import Scalars
from kernelgen.tensor.dims import Sym, product
from kernelgen.tensor.dtypes import FLOAT32, FLOAT64, INT64

DYNAMIC = "shared_memory"


def print_program(nest: Nest, dialect: Dialect) -> str:
    """The text of all kernels of a nest."""
    scalars = Scalars(dialect)
    wide = _needs_wide_indices(nest)
    kernels = [_kernel(grid, nest, scalars, wide) for grid in nest.body.statements if isinstance(grid, Grid)]
    functions = list(scalars.helper_texts())
    headers = [line for dtype, line in dialect.headers.items() if dtype in scalars.types]
    body = "\n".join([*functions, *kernels])
    spelled_out = [text for name, text in dialect.helpers.items() if f"{name}(" in body]
    return "\n".join(
        [f"// {dialect.name} for nest {comment(nest.name)}", *dialect.prelude, *headers, *spelled_out, body]
    )


def _needs_wide_indices(nest: Nest) -> bool:
    sizes = [product(buffer.shape) for buffer in nest.buffers]
    if any(isinstance(size, Sym) or size > NARROW for size in sizes):
        return True
    for part in statements(nest.body):
        if isinstance(part, Grid):
            threads = part.blocks.value * part.threads[0] * part.threads[1] if isinstance(part.blocks, Num) else None
            if threads is None or threads > NARROW:
                return True
        elif isinstance(part, For) and isinstance(part.upper, Num) and part.upper.value > NARROW:
            return True
    return False


def _kernel(grid: Grid, nest: Nest, scalars: Scalars, wide: bool) -> str:
    dialect, launch = scalars.dialect, launch_of(grid, nest)
    stored = written(grid)
    meets = any(isinstance(s, Sync) for s in statements(grid))
    own = dialect.common if meets else dialect.pointer
    parameters: list[str] = []
    for position in launch.buffers:
        buffer = nest.buffers[position]
        form = own if buffer.name in stored else dialect.constant
        parameters.append(form.format(type=scalars.type(buffer.dtype), name=spelled(buffer.name)))
    number = dialect.types[INT64]
    parameters += [f"const {number} {spelled(name)}" for name in nest.symbols]
    places = dynamic_places(grid, launch)
    if places and dialect.dynamic_parameter:
        parameters.append(dialect.dynamic_parameter.format(name=DYNAMIC))
    x, y = grid.threads
    head = f"{dialect.kernel.format(x=x, y=y, threads=x * y)} {grid.name}({', '.join(parameters)}) {{"
    ranges = {name: Range(1) for name in nest.symbols}
    body = _Printer(scalars, number if wide else "int", places, nest.symbols, ranges).grid(grid)
    return "\n".join([head, *(f"  {line}" for line in body), "}", ""])


@dataclass(frozen=True)
class _Printer(ExpressionPrinter):
    """Prints statements."""

    def grid(self, grid: Grid) -> Iterator[str]:
        """The body of a kernel."""
        if self.places and self.dialect.dynamic_shared:
            yield self.dialect.dynamic_shared.format(name=DYNAMIC)
        for part in statements(grid):
            if isinstance(part, Alloc) and part.buffer.space is Space.SHARED:
                yield self.array(part.buffer)
        numbers = {
            BLOCK_INDEX: range_of(ix.subtract(grid.blocks, Num(1)), self.ranges).high,
            **{name: width - 1 for name, width in zip(THREAD_INDICES, grid.threads, strict=True)},
        }
        used = _names_in(grid.body)
        for name in numbers:
            if name in used:
                yield f"const {self.integer} {name} = {self.dialect.indices[name]};"
        known = {name: Range(0, high) for name, high in numbers.items()}
        yield from replace(self, ranges={**self.ranges, **known}).block(grid.body)

    def block(self, block: Block) -> Iterator[str]:
        """Statements in order; each one sees what was bound before it."""
        here = self
        for part in block.statements:
            yield from here.statement(part)
            if isinstance(part, Bind):
                here = here.knowing(part.var, range_of(part.index, here.ranges))

    def knowing(self, name: str, values: Range) -> _Printer:
        """The printer where a variable is in scope."""
        return replace(self, ranges={**self.ranges, name: values})

    def under(self, conditions: Sequence[Compare]) -> _Printer:
        """The printer where the conditions hold, as far as they are lower bounds of variables."""
        here = self
        for condition in conditions:
            match condition:
                case Compare("<=", Num(low), Var(name)):
                    here = here.knowing(name, Range(low, here.ranges.get(name, Range()).high))
                case _:
                    pass
        return here

    def statement(self, statement: Statement) -> Iterator[str]:
        """One statement and all inside."""
        match statement:
            case For():
                return self.loop(statement)
            case If(conditions, body):
                return self.under(conditions).braced(f"if ({' && '.join(map(self.condition, conditions))}) ", body)
            case Block():
                return self.braced("", statement)
            case Alloc(buffer):
                return iter((self.array(buffer),) if buffer.space is Space.PRIVATE else ())
            case Combine():
                return self.combination(statement)
            case Grid():
                raise CodegenError("a grid inside a grid")
            case Prefetch():
                raise CodegenError("a prefetch is for processors")
            case _:
                return iter((self.line(statement),))

    def braced(self, head: str, body: Block) -> Iterator[str]:
        """A block of its own scope."""
        yield f"{head}{{"
        yield from _indented(self.block(body))
        yield "}"

    def line(self, statement: Let | Store | Accumulate | OfGrid) -> str:
        """A statement of one line."""
        match statement:
            case Let(name, value):
                return f"const {self.scalars.type(value.dtype)} {spelled(name)} = {self.expression(value)};"
            case Bind(var, index):
                return f"const {self.integer} {var} = {self.index(index)};"
            case Store(buffer, index, value):
                return f"{self.element(buffer, index)} = {self.expression(value)};"
            case Accumulate():
                return self.accumulate(statement)
            case Sync():
                return self.dialect.barrier
            case Copy():
                return self.copy(statement)
            case _:
                return self.of_tiles(statement)

    def accumulate(self, statement: Accumulate) -> str:
        """One more term; a product is added with one rounding, where the type has such an instruction."""
        place, kind = self.element(statement.buffer, statement.index), statement.buffer.dtype
        match statement:
            case Accumulate(_, _, "add", Call("mul", factors)) if kind in (FLOAT32, FLOAT64):
                terms = [*map(self.expression, factors), place]
                return f"{place} = {self.scalars.call('fma', terms, kind, kind)};"
            case _:
                terms = [place, self.expression(statement.value)]
                return f"{place} = {self.scalars.call(statement.function, terms, kind, kind)};"

    def loop(self, loop: For) -> Iterator[str]:
        """A counted loop."""
        lower, upper = range_of(loop.lower, self.ranges), range_of(loop.upper, self.ranges)
        high = None if upper.high is None else upper.high - 1
        if loop.kind is LoopKind.UNROLL:
            yield "#pragma unroll"
        pace = f"++{loop.var}" if loop.step == 1 else f"{loop.var} += {loop.step}"
        yield (
            f"for ({self.integer} {loop.var} = {self.index(loop.lower)}; {loop.var} < {self.index(loop.upper)}; {pace}) {{"
        )
        yield from _indented(self.knowing(loop.var, Range(lower.low, high)).block(loop.body))
        yield "}"

    def array(self, buffer: Buffer) -> str:
        """The declaration of a private or shared array; one element is a variable."""
        name, kind = spelled(buffer.name), self.scalars.type(buffer.dtype)
        is_shared = buffer.space is Space.SHARED
        if buffer.name in self.places:
            pointer = f"{self.space(buffer)}{kind}*"
            return f"{pointer} const {name} = ({pointer})({DYNAMIC} + {self.index(self.places[buffer.name])});"
        extent = f"[{product(buffer.shape)}]" if buffer.shape else ""
        aligned = self.dialect.aligned if buffer.shape else ""
        return f"{self.dialect.shared if is_shared else ''}{aligned}{kind} {name}{extent};"

    def space(self, buffer: Buffer) -> str:
        """What a pointer to a buffer says about where that is."""
        return self.dialect.spaces.get(buffer.space, self.dialect.elsewhere)

    def combination(self, combine: Combine) -> Iterator[str]:
        """A butterfly of shuffles: afterwards all lanes hold the same bits."""
        buffer = combine.buffer
        place, kind = self.element(buffer, combine.index), self.scalars.type(buffer.dtype)
        if self.dialect.shuffle is None:
            raise CodegenError(f"{self.dialect.name} has no exchange of registers, which {buffer.name} needs")
        sent = f"(int){place}" if buffer.dtype.itemsize < 4 and not buffer.dtype.is_float else place
        yield "#pragma unroll"
        yield f"for (int lanes = {combine.width // 2}; lanes > 0; lanes /= 2) {{"
        shuffled = self.dialect.shuffle.format(
            value=sent, lanes="lanes", width=combine.width, mask=self.mask(combine.width)
        )
        yield f"  const {kind} other = ({kind}){shuffled};"
        yield f"  {place} = {self.scalars.call(combine.function, [place, 'other'], buffer.dtype, buffer.dtype)};"
        yield "}"

    def mask(self, width: int) -> str:
        """The lanes of a warp that combine: others may be elsewhere.

        Where a block has rows of threads, a row is as wide as the group.
        """
        if width == WARP:
            return "0xffffffffu"
        x, y = (self.dialect.indices[name] for name in THREAD_INDICES)
        group = f"{x} / {width}" if self.ranges[THREAD_INDICES[1]] == Range(0, 0) else y
        return f"0x{(1 << width) - 1:x}u << {group} * {width} % {WARP}"

    def copy(self, copy: Copy) -> str:
        """Neighbours moved by one instruction."""
        count = copy.count * copy.source.dtype.itemsize
        is_own = copy.target.space in (Space.PRIVATE, Space.SHARED)
        return (self.dialect.copy if is_own else self.dialect.copy_out).format(
            bytes=count,
            vector=self.dialect.vectors[count],
            to=self.space(copy.target),
            of=self.space(copy.source),
            target=f"&{self.element(copy.target, copy.to)}",
            source=f"&{self.element(copy.source, copy.start)}",
        )

    def of_tiles(self, statement: OfGrid) -> str:
        """What only products in tiles do."""
        tiles = self.dialect.tiles
        if tiles is None:
            raise CodegenError(f"{self.dialect.name} has no spelling for {type(statement).__name__}")
        match statement:
            case AsyncCopy():
                conditions = " && ".join(map(self.condition, statement.conditions)) or "true"
                return tiles.async_copy.format(
                    target=f"&{self.element(statement.target, statement.to)}",
                    source=f"&{self.element(statement.source, statement.start)}",
                    condition=f"({conditions})",
                )
            case CommitCopies():
                return tiles.commit_copies
            case AwaitCopies(pending):
                return tiles.await_copies.format(pending=pending)
            case LoadFragments():
                return self.fragments(statement, tiles)
            case MultiplyFragments():
                return self.product(statement, tiles)
            case _:
                raise CodegenError(f"{type(statement).__name__} in a line of its own")

    def fragments(self, load: LoadFragments, tiles: TileInstructions) -> str:
        """Matrices into registers."""
        registers = [self.element(load.target, _further(load.to, k)) for k in range(load.count)]
        return tiles.load_fragments.format(
            count=load.count,
            order=tiles.orders[load.transposed],
            outputs=", ".join(f"%{k}" for k in range(load.count)),
            targets=", ".join(f'"=r"({register})' for register in registers),
            address=f"&{self.element(load.source, load.start)}",
        )

    def product(self, multiply: MultiplyFragments, tiles: TileInstructions) -> str:
        """One instruction of a tensor core."""
        groups = (
            ("d", 4, multiply.target, multiply.to),
            ("a", 4, multiply.left, multiply.left_at),
            ("b", 2, multiply.right, multiply.right_at),
        )
        registers = {
            f"{letter}{k}": self.element(buffer, _further(index, k))
            for letter, count, buffer, index in groups
            for k in range(count)
        }
        kind = tiles.fragment_types[multiply.dtype]
        return tiles.multiply_fragments.format(type=kind, **registers)


def _further(index: tuple[Index, ...], steps: int) -> tuple[Index, ...]:
    """The place of an element some steps further in its row, or in the ones that follow."""
    return (*index[:-1], ix.add(index[-1], Num(steps)))


def _names_in(block: Block) -> frozenset[str]:
    """The variables that are used anywhere inside."""
    found: set[str] = set()
    for part in statements(block):
        match part:
            case Bind(_, index):
                found |= ix.variables(index)
            case For(_, lower, upper):
                found |= ix.variables(lower) | ix.variables(upper)
            case If(conditions):
                found |= {n for c in conditions for side in (c.left, c.right) for n in ix.variables(side)}
            case Store(_, index) | Accumulate(_, index):
                found |= {n for i in index for n in ix.variables(i)}
            case _:
                pass
    return frozenset(found)


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
