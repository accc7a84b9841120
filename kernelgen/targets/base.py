"""What a target is: two functions and a name. Adding one is adding a file to this directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kernelgen.nest.nodes import Nest


class Entry(Protocol):
    """A loaded kernel body.

    Called with one C-contiguous array per buffer of the nest, in order (inputs, outputs, workspaces), each of the
    buffer's dtype and of ``nest.argument_shapes`` (the buffer's own shape where that is empty), and the values of the
    nest's symbols in order. It writes outputs in place and returns None.
    """

    def __call__(self, arrays: tuple[object, ...], symbols: tuple[int, ...]) -> None:
        """Runs the kernel."""
        ...


@dataclass(frozen=True)
class Target:
    """A back end.

    ``emit`` prints a nest as source text and is deterministic. ``load`` turns the source into something callable;
    the nest gives the calling convention. ``lanes`` is the number of bytes of a vector register (1 = no vectors).
    """

    name: str
    emit: Callable[[Nest], str]
    load: Callable[[str, Nest], Entry]
    vector_bytes: int = 1
