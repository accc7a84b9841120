"""Runs a gang: lanes together while they can be, lowest chunk first when they went apart, meetings at barriers.

A meeting (``flow.Chunk.meeting``) waits for the lanes that must arrive: the whole block at a barrier, the lanes that a
mask names at a warp instruction. When every lane waits or has ended and no meeting can take place, the launch stops
with a finding: that is a divergent barrier, or a mask that names lanes which never come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.machine.steps import ENDED, Step
from kernelgen.simulators.ptx.state.frame import Frame
from kernelgen.simulators.ptx.state.race_detector import MOST_WARP_BARRIERS
from kernelgen.simulators.ptx.state.state import State

WAITING = 1 << 20  # a lane that waits at step n stands at WAITING + n
EVERY_LANE = 0xFFFFFFFF


class Machine:
    """The lanes of one gang on their way through the steps of a kernel."""

    def __init__(self, state: State, steps: Sequence[Step], step_limit: int) -> None:
        self._state = state
        self._steps = steps
        self._limit = step_limit
        self._everyone = Frame(state, None)
        self._stands = np.zeros(state.lanes.count, np.int64)
        self._arrived = np.zeros(state.lanes.count, np.int64)  # when a lane came to the meeting that it waits at
        self._worked = np.zeros(state.lanes.count, np.int64)  # when it last did something, while others wait
        self._watches = False

    def run(self) -> None:
        """To the end of every lane. Raises Stop after a finding that ends the launch."""
        together, at = True, 0
        while True:
            if not together:
                at = int(self._stands.min())
                if at == ENDED:
                    return
                if at >= WAITING:
                    self._resolve()
                    continue
            moves = self._advance(at, self._everyone if together else self._at(at))
            together = len(moves) == 1 and moves[0][0] is self._everyone
            if not together:
                for frame, target in moves:
                    self._stands[frame.positions()] = target
                together = self._gathered()
                at = int(self._stands[0])
            else:
                at = moves[0][1]
            if together and at == ENDED:
                return

    def _at(self, step: int) -> Frame:
        places = np.flatnonzero(self._stands == step)
        return self._everyone if len(places) == self._state.lanes.count else Frame(self._state, places)

    def _gathered(self) -> bool:
        """Whether all lanes stand at one step that is no waiting place."""
        first = self._stands[0]
        return bool(first < WAITING) and bool((self._stands == first).all())

    def _advance(self, at: int, frame: Frame) -> list[tuple[Frame, int]]:
        """Runs a step for the lanes that stand at it, as far as their meeting allows; gives where they go."""
        step = self._steps[at]
        if not step.meeting:
            return self._execute(step, frame, at)
        moves = list[tuple[Frame, int]]()
        arriving: Frame | None = frame
        if step.guard is not None:
            mask = frame.spread(step.guard(frame))
            arriving, passing = frame.narrow(mask), frame.narrow(~mask)
            moves += step.branch(passing) if passing else []
        if arriving is None:
            return moves
        if arriving is self._everyone and (step.meeting == "block" or self._names_all(step)):
            return [*moves, *self._execute(step, arriving, at)]
        for lanes, target in moves:
            self._stands[lanes.positions()] = target
        self._stands[arriving.positions()] = WAITING + at
        self._arrived[arriving.positions()] = self._state.clock
        return [*moves, *self._meet(at)]

    def _names_all(self, step: Step) -> bool:
        """Whether every lane of the gang, all of which are here, names its whole warp by a constant."""
        assert step.members is not None
        mask = step.members(self._everyone)
        return not mask.ndim and int(mask) == EVERY_LANE

    def _meet(self, at: int) -> list[tuple[Frame, int]]:
        """Runs a step for those of its waiting lanes whose meeting is complete."""
        step, waiting = self._steps[at], self._at(WAITING + at)
        complete = self._whole_blocks(waiting) if step.meeting == "block" else self._whole_masks(step, waiting)
        self._watches |= step.meeting == "warp" and not complete.all()
        ready = waiting.narrow(complete)
        if ready is None:
            return []
        if step.meeting == "warp" and self._watches:
            self._check_absent(step, ready)
        return self._execute(step, ready, at)

    def _check_absent(self, step: Step, ready: Frame) -> None:
        """A mask may name lanes that have left, but not ones that went past the meeting and left afterwards."""
        lanes, positions = self._state.lanes, np.flatnonzero(self._stands == ENDED)
        since = np.full(int(lanes.warp[-1]) + 1, np.iinfo(np.int64).max)
        since[ready.warps()] = self._arrived[ready.positions()]
        passers = positions[self._worked[positions] > since[lanes.warp[positions]]]
        wrong = self._named(step, ready) & self._bits_by_warp(passers)[ready.warps()] != 0
        if wrong.any():
            ready.complain("bad-shuffle", step.first, wrong, "its mask names lanes that go past this instruction")

    def _execute(self, step: Step, frame: Frame, at: int) -> list[tuple[Frame, int]]:
        state = self._state
        state.clock += step.length
        if state.clock > self._limit:
            message = f"{self._limit} instructions ran, and there is no end"
            raise state.findings.stop("endless-loop", step.last, frame.name(0), message)
        state.tally.runs[at] += self._warps_of(frame)
        if self._watches and step.actions:
            self._worked[frame.positions()] = state.clock
        for action in step.actions:
            action(frame)
        if step.meeting == "warp" and "warp" in step.first.opcode:
            self._order_warps(step, frame)
        return step.branch(frame)

    def _warps_of(self, frame: Frame) -> int:
        """How many warps have a lane in the frame."""
        if frame is self._everyone:
            return int(self._state.lanes.warp[-1]) + 1
        return 1 + int(np.count_nonzero(np.diff(frame.warps())))

    def _whole_blocks(self, waiting: Frame) -> np.ndarray:
        lanes = self._state.lanes
        slots = waiting.pick(lanes.slot)
        return (np.bincount(slots, minlength=len(lanes.blocks)) == lanes.threads)[slots]

    def _whole_masks(self, step: Step, waiting: Frame) -> np.ndarray:
        """Which waiting lanes have all the lanes that they name here; lanes that ended are not waited for."""
        here = self._bits_by_warp(waiting.positions())[waiting.warps()]
        ended = self._bits_by_warp(np.flatnonzero(self._stands == ENDED))[waiting.warps()]
        named = self._named(step, waiting)
        return named & self._existing(waiting) & ~(here | ended) == 0

    def _named(self, step: Step, frame: Frame) -> np.ndarray:
        """The mask of each lane. A lane that its own mask leaves out is a fault."""
        assert step.members is not None
        mask = frame.spread(step.members(frame)).astype(np.int64)
        absent = mask >> frame.pick(self._state.lanes.lane) & 1 == 0
        if absent.any():
            frame.complain("bad-shuffle", step.first, absent, "the lane is not in its own mask")
        return mask

    def _existing(self, frame: Frame) -> np.ndarray:
        return (np.int64(1) << frame.pick(self._state.lanes.warp_size)) - 1

    def _bits_by_warp(self, positions: np.ndarray) -> np.ndarray:
        lanes = self._state.lanes
        weights = (1 << lanes.lane[positions]).astype(np.float64)  # sums of distinct powers below 2^32: exact
        return np.bincount(lanes.warp[positions], weights, int(lanes.warp[-1]) + 1).astype(np.int64)

    def _order_warps(self, step: Step, frame: Frame) -> None:
        """A ``bar.warp.sync`` that every lane of a warp takes part in puts the warp's accesses in order."""
        lanes = self._state.lanes
        covers = self._named(step, frame) & self._existing(frame) == self._existing(frame)
        sizes = np.bincount(frame.warps(), minlength=int(lanes.warp[-1]) + 1)[frame.warps()]
        positions = frame.positions()[covers & (sizes == frame.pick(lanes.warp_size))]
        self._state.sync[positions] += 1
        if len(positions) and int(self._state.sync.max()) > MOST_WARP_BARRIERS:
            raise PtxError(f"a warp passes more than {MOST_WARP_BARRIERS} barriers, which the race check cannot count")

    def _resolve(self) -> None:
        """No lane can go on: lanes that ended may have completed a mask; else the launch is stuck."""
        progress = False
        stuck = sorted(Counter(int(place) - WAITING for place in self._stands if WAITING <= place < ENDED).items())
        for at, _ in stuck:
            if self._steps[at].meeting == "warp":
                for frame, target in self._meet(at):
                    self._stands[frame.positions()] = target
                    progress = True
        if not progress:
            raise self._deadlock(stuck)

    def _deadlock(self, stuck: Sequence[tuple[int, int]]) -> Exception:
        ended = int(np.count_nonzero(self._stands == ENDED))
        at = next((at for at, _ in stuck if self._steps[at].meeting == "warp"), stuck[0][0])
        step = self._steps[at]
        kind = "bad-shuffle" if step.meeting == "warp" else "divergent-barrier"
        places = ", ".join(f"{number} at PTX line {self._steps[other].first.place.line}" for other, number in stuck)
        where = self._at(WAITING + at).name(0)
        return self._state.findings.stop(kind, step.first, where, f"waiting lanes: {places}; {ended} have ended")
