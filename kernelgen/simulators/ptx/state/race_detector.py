"""Who touched each word last, to find races: happens-before by barriers, kept per word as in FastTrack (Flanagan 2009).

One number for each word holds a thread, or the warp, block or "several blocks" that several threads share, and when it
was: the block's count of barriers and the warp's count of ``bar.warp.sync`` over the whole warp.

    bits 62..32  identity: block (21 bits, its place among those that run), thread (10 bits), the low bits zero for a warp
                 or block
    bits 31..30  level: 0 thread, 1 warp, 2 block, 3 several blocks
    bits 29..14  barriers of the block so far, plus one
    bits 13..0   barriers of the warp so far

Two blocks are in order only where one takes what the other published (see ``publication``). Warp barriers that name only
a part of the warp order nothing here: that may report a race where there is none, never the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

IDENTITY_SHIFT, LEVEL_SHIFT, EPOCH_SHIFT = 32, 30, 14
LEVEL_MASK, EPOCH_MASK, SYNC_MASK = 0x3, 0xFFFF, 0x3FFF
WARP_BITS, BLOCK_BITS = 5, 10
MOST_BARRIERS, MOST_WARP_BARRIERS = EPOCH_MASK - 1, SYNC_MASK - 1
THREAD, WARP, BLOCK, ALL = range(4)
SHARED_MARK = -1


@dataclass(frozen=True)
class Visitors:
    """The lanes that touch words in one instruction: identity and time of each."""

    identity: np.ndarray
    epoch: np.ndarray
    sync: np.ndarray

    def codes(self) -> np.ndarray:
        """The lanes as codes of level thread."""
        return self.identity << IDENTITY_SHIFT | (self.epoch + 1) << EPOCH_SHIFT | self.sync

    def pick(self, places: np.ndarray) -> Visitors:
        """Some of them."""
        return Visitors(self.identity[places], self.epoch[places], self.sync[places])


class Shadow:
    """Last writers, readers and atomic users of the words of a region; ``word`` is in bytes."""

    def __init__(self, size: int, word: int) -> None:
        words = -(-size // word)
        self.word = word
        self.size = size
        self.writer = np.zeros(words, np.int64)
        self.reader = np.zeros(words, np.int64)
        self.atomic = np.zeros(words, np.int64)
        self.has_atomics = False
        self.excuse: Callable[[np.ndarray, Visitors], np.ndarray] | None = None

    def read(self, words: np.ndarray, who: Visitors) -> np.ndarray | None:
        """Notes reads; gives which of them race with a write, None for none."""
        wrong = self._against(words, who, readers=False, atomics=True)
        self._note(self.reader, words, who)
        return wrong

    def write(self, words: np.ndarray, who: Visitors) -> np.ndarray | None:
        """Notes writes; gives which of them race with another access, two writes of one instruction included."""
        wrong = self._against(words, who, readers=True, atomics=True)
        codes = who.codes()
        self.writer[words] = codes
        twice = self.writer[words] != codes
        if twice.any():
            wrong = twice if wrong is None else wrong | twice
        return wrong

    def update(self, words: np.ndarray, who: Visitors) -> np.ndarray | None:
        """Notes atomic accesses, which race with plain ones only."""
        wrong = self._against(words, who, readers=True, atomics=False)
        self.has_atomics = True
        self._note(self.atomic, words, who)
        return wrong

    def unwritten(self, words: np.ndarray) -> np.ndarray | None:
        """Which of the words nobody has written, None for none."""
        missing = self.writer[words] == 0
        if self.has_atomics:
            missing &= self.atomic[words] == 0
        return missing if missing.any() else None

    def _against(self, words: np.ndarray, who: Visitors, readers: bool, atomics: bool) -> np.ndarray | None:
        wrong = self._races(self.writer[words], who)
        if readers:
            wrong = _either(wrong, self._races(self.reader[words], who))
        if atomics and self.has_atomics:
            wrong = _either(wrong, self._races(self.atomic[words], who))
        return wrong

    def _races(self, old: np.ndarray, who: Visitors) -> np.ndarray | None:
        """Which of the earlier accesses ``old`` are not in order before those of ``who``, None for none."""
        wrong = ~self._ordered(old, who)
        return wrong if wrong.any() else None

    def _ordered(self, old: np.ndarray, who: Visitors) -> np.ndarray:
        """By barriers, or by what blocks published to each other (``excuse``)."""
        ordered = _in_order(old, who)
        if self.excuse is not None and not ordered.all():
            open_ones = np.flatnonzero(~ordered)
            ordered[open_ones] = self.excuse(old[open_ones], who.pick(open_ones))
        return ordered

    def _note(self, table: np.ndarray, words: np.ndarray, who: Visitors) -> None:
        """Stores the visitors; where several are not in order, their common warp or block takes their place."""
        old = table[words]
        codes, ordered = who.codes(), self._ordered(old, who)
        if not ordered.all():
            codes = np.where(ordered, codes, _join(old, who))
        table[words] = codes
        for level in (WARP, BLOCK, ALL):
            lost = table[words] != codes  # another lane of this instruction stands there
            if not lost.any():
                return
            table[words[lost]] = SHARED_MARK
            codes = np.where(table[words] == SHARED_MARK, _at_level(codes, np.maximum(_level(codes), level)), codes)
            table[words] = codes


def _either(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    if first is None or second is None:
        return second if first is None else first
    return first | second


def _in_order(old: np.ndarray, who: Visitors) -> np.ndarray:
    """Whether each earlier access happens before (or is of the same thread as) the new one; no access is in order."""
    if not old.any():
        return np.ones(len(old), np.bool_)
    identity, level = old >> IDENTITY_SHIFT, _level(old)
    epoch, sync = (old >> EPOCH_SHIFT) & EPOCH_MASK, old & SYNC_MASK
    same_block = identity >> BLOCK_BITS == who.identity >> BLOCK_BITS
    same_warp = (identity >> WARP_BITS == who.identity >> WARP_BITS) & (level <= WARP)
    own = (identity == who.identity) & (level == THREAD)
    earlier = (epoch <= who.epoch) | (same_warp & (sync < who.sync))
    return (old == 0) | own | (same_block & (level <= BLOCK) & earlier)


def _join(old: np.ndarray, who: Visitors) -> np.ndarray:
    """The smallest group that holds an earlier access and a new one, at the time of the new one."""
    identity = old >> IDENTITY_SHIFT
    level = np.maximum(_level(old), WARP)
    level = np.where(identity >> WARP_BITS != who.identity >> WARP_BITS, np.maximum(level, BLOCK), level)
    level = np.where(identity >> BLOCK_BITS != who.identity >> BLOCK_BITS, ALL, level)
    return _at_level(who.codes(), level)


def _level(codes: np.ndarray) -> np.ndarray:
    return codes >> LEVEL_SHIFT & LEVEL_MASK


def _at_level(codes: np.ndarray, level: np.ndarray) -> np.ndarray:
    hidden = np.array([0, (1 << WARP_BITS) - 1, (1 << BLOCK_BITS) - 1, -1], np.int64)[level]
    identity = codes >> IDENTITY_SHIFT & ~hidden
    time = codes & np.where(level == BLOCK, EPOCH_MASK << EPOCH_SHIFT, (1 << LEVEL_SHIFT) - 1)
    plain = identity << IDENTITY_SHIFT | level << LEVEL_SHIFT | time
    return np.where(level == ALL, np.int64(ALL) << LEVEL_SHIFT, plain)


def block_of(codes: np.ndarray) -> np.ndarray:
    """The blocks of codes."""
    return codes >> IDENTITY_SHIFT >> BLOCK_BITS


def thread_of(codes: np.ndarray) -> np.ndarray:
    """The identities of codes that stand for a single thread, -1 for others."""
    return np.where(_level(codes) == THREAD, codes >> IDENTITY_SHIFT, -1)


def epoch_of(codes: np.ndarray) -> np.ndarray:
    """How many barriers the block had passed."""
    return (codes >> EPOCH_SHIFT & EPOCH_MASK) - 1


def is_several_blocks(codes: np.ndarray) -> np.ndarray:
    """Codes that stand for more than one block."""
    return _level(codes) == ALL


def describe(code: int, blocks: Sequence[int]) -> str:
    """Who a code stands for, in words; ``blocks`` are the numbers of those that run."""
    identity, level = code >> IDENTITY_SHIFT, code >> LEVEL_SHIFT & LEVEL_MASK
    block, thread = blocks[identity >> BLOCK_BITS], identity & ((1 << BLOCK_BITS) - 1)
    return {
        THREAD: f"thread {thread} of block {block}",
        WARP: f"threads of warp {thread >> WARP_BITS} of block {block}",
        BLOCK: f"several warps of block {block}",
        ALL: "several blocks",
    }[level]
