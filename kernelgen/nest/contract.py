"""Shrinks temporaries to what is alive at a time, and makes the small ones local.

    workspace e[M, N]                         parallel for i:
    parallel for i:                             alloc e[N]
      for j: e[i, j] = exp(x[i, j])     ->      for j: e[j] = exp(x[i, j])
      for j: y[i, j] = e[i, j] / s[i]           for j: y[i, j] = e[j] / s

Let B be the innermost block that holds all accesses of a temporary. A dim that all of them address by the variable of
one loop around B needs one element only: every access of an iteration of that loop has the same index there, so no
value passes between iterations. The temporary then belongs to an iteration of that loop and is allocated in B.
Storage is decided here, after scheduling, because before it nobody knows which loops are shared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelgen.dims import Sym, product
from kernelgen.nest.nodes import (
    Alloc,
    Block,
    Buffer,
    For,
    If,
    Index,
    LoopKind,
    Nest,
    Space,
    Var,
)
from kernelgen.nest.walk import accesses, map_accesses, statements

LOCAL_BYTES = 64 * 1024  # of one temporary on the stack of a thread


def contract(nest: Nest) -> Nest:
    """The nest with each temporary that then fits a stack as small as its accesses allow."""
    return _with_locals(nest, on_heap=False)


def contract_large(nest: Nest) -> Nest:
    """The same for temporaries of any size, symbolic ones too: a target takes them from the heap.

    Only worth it when dims are dropped; a temporary that keeps its full size is better allocated once, as a workspace.
    """
    return _with_locals(nest, on_heap=True)


def _with_locals(nest: Nest, on_heap: bool) -> Nest:
    body = nest.body
    kept: list[Buffer] = []
    for buffer in nest.buffers:
        if buffer.space is not Space.WORKSPACE:
            kept.append(buffer)
            continue
        home = _home(body, buffer.name, (), ())
        local = _local_form(buffer, home, on_heap)
        if local is None:
            kept.append(buffer)
        else:
            body = _allocate(map_accesses(body, buffer.name, local.buffer, local.dims), home.path, local.buffer)
    return replace(nest, buffers=tuple(kept), body=body)


@dataclass(frozen=True)
class _Home:
    """The innermost block that holds all accesses: the way to it, the loops around it, the accesses."""

    path: tuple[int, ...]
    loops: tuple[For, ...]
    block: Block
    indices: tuple[tuple[Index, ...], ...]


@dataclass(frozen=True)
class _Local:
    """A temporary without the dims that stay constant."""

    buffer: Buffer
    dims: tuple[int, ...]  # the original dims that are kept


def _home(block: Block, name: str, path: tuple[int, ...], loops: tuple[For, ...]) -> _Home:
    holders = [k for k, part in enumerate(block.statements) if any(True for _ in accesses(part, name))]
    if len(holders) == 1 and isinstance(part := block.statements[holders[0]], For | If):
        inner = (*loops, part) if isinstance(part, For) else loops
        return _home(part.body, name, (*path, holders[0]), inner)
    return _Home(path, loops, block, tuple(index for _, index in accesses(block, name)))


def _local_form(buffer: Buffer, home: _Home, on_heap: bool) -> _Local | None:
    """The local temporary, or None when it is too large for its place or shared between parallel iterations."""
    variables = {Var(loop.var) for loop in home.loops}
    dims: list[int] = []
    for dim in range(len(buffer.shape)):
        addressed = {index[dim] for index in home.indices}
        if not (len(addressed) == 1 and addressed <= variables):
            dims.append(dim)
    shape = tuple(buffer.shape[dim] for dim in dims)
    size = product(shape)
    fits_stack = not isinstance(size, Sym) and size * buffer.dtype.itemsize <= LOCAL_BYTES
    if not fits_stack and not (on_heap and len(shape) < len(buffer.shape)):
        return None
    if any(isinstance(s, For) and s.kind is LoopKind.PARALLEL for s in statements(home.block)):
        return None
    return _Local(Buffer(buffer.name, buffer.dtype, shape, Space.LOCAL), tuple(dims))


def _allocate(root: Block, path: tuple[int, ...], buffer: Buffer) -> Block:
    if not path:
        return Block((Alloc(buffer), *root.statements))
    parts = list(root.statements)
    part = parts[path[0]]
    if isinstance(part, For | If):
        parts[path[0]] = replace(part, body=_allocate(part.body, path[1:], buffer))
    return Block(tuple(parts))
