"""What devices of many threads are like: how many go together, and what else they can do, which differs between kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WARP = 32
"""Threads that go together. The proof of races and the interpreter have their own: they check what is made with this one."""

PROCESSORS, RESIDENT = 132, 2048
"""Multiprocessors of the device that sizes are chosen for (H100, H200), and the threads that one holds at once."""


@dataclass(frozen=True)
class Abilities:
    """A row of facts about a kind of device; the passes that make a thread's program ask for no others.

    ``lanes`` is how many neighbours exchange registers: a power of two, 1 where none do. A wavefront of 64 is two groups
    of 32, so that one text runs on wavefronts of either size.
    """

    lanes: int = 32
    tensor_cores: bool = True  # a warp multiplies matrices of 16-bit numbers
    async_copies: bool = True  # from global to shared memory, while the thread goes on
    divided_meetings: bool = True  # threads meet where some blocks go and others do not


DEVICES: Mapping[str, Abilities] = {
    "gpu": Abilities(),
    "gpu:hip": Abilities(tensor_cores=False, async_copies=False),
    "gpu:opencl": Abilities(lanes=1, tensor_cores=False, async_copies=False, divided_meetings=False),
}
"""Kinds of devices, by the name of their machine, which is the target's name too.

OpenCL C is that of 1.2: sub-groups are an extension of later versions. PoCL 3.0 makes wrong code of barriers in a condition
on the block's number, although all threads of a block agree on it.
"""
