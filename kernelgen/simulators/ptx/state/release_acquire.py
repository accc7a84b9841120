"""Order between blocks: a fence, then an atomic operation, publishes what a block did; a later atomic on that word takes it.

This is how the last block of a split reduction may read the partial results of all others:

    every thread: store;  barrier;  thread 0: fence, atomic on a ticket;  barrier;  in the last block: load

A block publishes, by the atomic of one of its threads, the accesses of its earlier barrier intervals, if that thread
made a fence after them or every writing thread made one before a barrier, and the thread's own ones if it stored nothing
after its fence. The block that comes later to the same word may rely on them after its own next barrier, and the thread
itself at once. Two things are not modelled: what the publishing thread stores between its atomic and the next barrier
counts as published, and a block cannot wait in a loop for another, since gangs of blocks run one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelgen.simulators.ptx.state.lanes import THREAD_BITS
from kernelgen.simulators.ptx.state.race_detector import Visitors, block_of, epoch_of, is_several_blocks, thread_of

Word = tuple[str, int]


@dataclass(frozen=True)
class Entry:
    """One publication: a thread's block up to barrier count ``until``, the thread itself up to ``own``."""

    identity: int
    until: int
    own: int


@dataclass(frozen=True)
class Taken:
    """What a block took over: the first ``length`` publications at a word, by one thread in one barrier interval."""

    word: Word
    length: int
    epoch: int
    identity: int


class Publications:
    """All publications of a launch, in the order of the atomic operations."""

    def __init__(self) -> None:
        self._log: dict[Word, list[Entry]] = {}
        self._taken: dict[int, list[Taken]] = {}

    def visit(self, word: Word, epoch: int, entry: Entry) -> None:
        """A thread's atomic on a word: it takes what is there, and adds an entry of its own."""
        log = self._log.setdefault(word, [])
        if log:
            taken = Taken(word, len(log), epoch, entry.identity)
            self._taken.setdefault(entry.identity >> THREAD_BITS, []).append(taken)
        log.append(entry)

    def orders(self, old: np.ndarray, who: Visitors) -> np.ndarray:
        """Which earlier accesses (shadow codes) of other blocks are in order before those of ``who``."""
        result = np.zeros(len(old), np.bool_)
        blocks = who.identity >> THREAD_BITS
        for block, every in self._taken.items():
            mine = blocks == block
            if not mine.any():
                continue
            for taken in every:
                known = self._known(taken, old[mine])
                allowed = (who.epoch[mine] > taken.epoch) | (who.identity[mine] == taken.identity)
                result[mine] |= known & allowed
        return result

    def _known(self, taken: Taken, old: np.ndarray) -> np.ndarray:
        """Which codes lie before what their blocks had published."""
        until, own = dict[int, int](), dict[int, int]()
        for entry in self._log[taken.word][: taken.length]:
            block = entry.identity >> THREAD_BITS
            until[block] = max(until.get(block, 0), entry.until)
            own[entry.identity] = max(own.get(entry.identity, 0), entry.own)
        blocks = np.array([until.get(int(block), 0) for block in block_of(old)])
        threads = np.array([own.get(int(thread), 0) for thread in thread_of(old)])
        return (epoch_of(old) < np.maximum(blocks, threads)) & ~is_several_blocks(old)
