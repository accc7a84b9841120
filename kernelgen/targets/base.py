"""What a target is: two functions and a name. Adding one is adding a file to this directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelgen.machines.cpu import CPU
from kernelgen.machines.usual import Machine
from kernelgen.native.call import Entry
from kernelgen.native.signature import Argument
from kernelgen.nest.nodes import Nest, Space
from kernelgen.plan import CodePlan, CpuPlan


def arguments(nest: Nest) -> tuple[Argument, ...]:
    """The arrays of a nest in calling order, with the shapes that callers see; workspaces may have none of those."""
    own = tuple(buffer.shape for buffer in nest.buffers)
    shapes = (*nest.argument_shapes, *own[len(nest.argument_shapes) :])
    return tuple(
        Argument(buffer.name, buffer.dtype, shape, buffer.space is not Space.INPUT)
        for buffer, shape in zip(nest.buffers, shapes, strict=True)
    )


@dataclass(frozen=True)
class Printer:
    """A printer with choices of its own: ``choose`` makes them, ``emit`` follows them or raises ArgumentError."""

    choose: Callable[[Nest], CodePlan]
    emit: Callable[[Nest, CodePlan], str]


@dataclass(frozen=True)
class Target:
    """A back end.

    ``emit`` prints a nest as source text and is deterministic. ``load`` turns the source into something callable;
    the nest gives the calling convention.
    ``machine`` is the one that its nests are made for, or the name of one of :data:`kernelgen.machines.usual.MACHINES`.
    ``sizes`` are those that the mapping starts from on this machine.
    ``printer`` prints by choices that a plan may hold; ``emit`` then makes them itself.
    ``variant`` gives the same back end for another machine of its family, which is named behind a colon: ``ascend:910A``.
    ``at_hand`` gives the same back end for the very machine that is there, if one is.
    ``claims`` shows, from the source alone, what its instructions claim (aligned addresses; on some machines counts and
    strides): function -> how many claims; it raises ProofError for one that is not shown.
    ``files`` gives what a user takes away of a kernel: file name -> text; None where the source is all there is.
    """

    name: str
    emit: Callable[[Nest], str]
    load: Callable[[str, Nest], Entry]
    machine: Machine | str = CPU
    sizes: Callable[[], CpuPlan] = CpuPlan
    printer: Printer | None = None
    variant: Callable[[str], Target] | None = None
    at_hand: Callable[[], Target] | None = None
    files: Callable[[str, Nest], Mapping[str, str]] | None = None
    claims: Callable[[str], Mapping[str, int]] | None = None
