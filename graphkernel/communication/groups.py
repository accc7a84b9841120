"""Which communicator a group of the graph is."""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel.communication.alone import Alone
from graphkernel.communication.communicator import Communicator
from graphkernel.errors import RuntimeFailure

Communicators = Communicator | Mapping[str, Communicator] | None
"""One for all groups, one for each by its name, or none: then every group is this process alone."""


def of_group(communicators: Communicators, group: str, size: int, user: str) -> Communicator:
    """The one of the communicators that a group of this size is, 0 for any; ``user`` is what asks, for errors.

    Raises RuntimeFailure where there is none, or one of another number of processes.
    """
    found = communicators.get(group) if isinstance(communicators, Mapping) else communicators
    if found is None and (size != 1 or communicators is not None):
        told = f"of {size} processes" if size else "of other processes"
        raise RuntimeFailure(f"{user} needs group {group!r} {told}: compile(graph, communicator=...)")
    found = found or Alone()
    if size not in (0, found.size):
        raise RuntimeFailure(
            f"{user} is over {size} processes (rank_size), the communicator of {group!r} has {found.size}"
        )
    return found
