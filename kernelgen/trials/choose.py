"""A profile for every input: those that keep a small kernel of the same operators in their domains and show the most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelgen.desc import IN_PLACE_OPS, KernelDesc
from kernelgen.enclosure import enclosed_values
from kernelgen.errors import UnsupportedError
from kernelgen.samples import atomic_targets
from kernelgen.samples_index import index_inputs
from kernelgen.trials.goals import Goal, Shown, shown
from kernelgen.trials.marks import structured
from kernelgen.trials.profiles import PLAIN, Array, Profile, Random

Profiles = tuple[Profile, ...]

ENOUGH = 0.9
"""A share of known results that is not looked to be improved."""
PASSES = 2
CULPRITS = 5
"""Inputs that are varied where an operator leaves its domain."""
CANDIDATES = 10
"""Draws that are tried for the sake of goals that were not reached, for each round."""


def draw_profiles(desc: KernelDesc, profiles: Sequence[Profile], random: Random) -> list[Array]:
    """One array per input of a description without symbols; indices fit, cleared targets are zero."""
    indices, cleared = index_inputs(desc, random), atomic_targets(desc)
    drawn: list[Array] = []
    for tensor, profile in zip(desc.inputs, profiles, strict=True):
        shape = tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised
        if tensor.name in indices:
            drawn.append(indices[tensor.name])
        elif tensor.name in cleared:
            drawn.append(np.zeros(shape, tensor.dtype.numpy))
        else:
            drawn.append(structured(profile.draw(tensor.dtype, shape, random), random))
    return drawn


@dataclass(frozen=True)
class Chooser:
    """Tries profiles on a small description without symbols."""

    desc: KernelDesc
    random: Random

    @cached_property
    def options(self) -> Profiles:
        """What an input may be."""
        centres = {float(t.value) for op in self.desc.ops for t in op.inputs if t.value is not None}
        return (*PLAIN, *(Profile("near", centre) for centre in sorted(centres)[:6]))

    @cached_property
    def sources(self) -> Mapping[int, frozenset[int]]:
        """Operator, by its place -> the inputs that it is computed from."""
        known = {t.name: frozenset({k}) for k, t in enumerate(self.desc.inputs)}
        found: dict[int, frozenset[int]] = {}
        for place, op in enumerate(self.desc.ops):
            found[place] = frozenset[int]().union(*(known[t.name] for t in op.inputs if t.value is None))
            known |= {t.name: found[place] for t in op.outputs}
            if op.name in IN_PLACE_OPS:
                known[op.inputs[0].name] = found[place]
        return found

    def tried(self, profiles: Profiles) -> Shown:
        """What one draw shows."""
        try:
            return shown(self.desc, enclosed_values(self.desc, draw_profiles(self.desc, profiles, self.random)))
        except UnsupportedError:
            return Shown(1.0, frozenset(), frozenset(), ())

    def best(self) -> tuple[Profiles, Shown]:
        """Profiles with which most results are known."""
        count = len(self.desc.inputs)
        profiles: Profiles = (PLAIN[0],) * count
        found = self.tried(profiles)
        if _merit(found) < ENOUGH:
            for option in PLAIN[1:6]:
                other = self.tried((option,) * count)
                if _merit(other) > _merit(found):
                    profiles, found = (option,) * count, other
        for _ in range(PASSES):
            if _merit(found) < ENOUGH:
                profiles, found = self._improved(profiles, found)
        return profiles, found

    def _improved(self, profiles: Profiles, found: Shown) -> tuple[Profiles, Shown]:
        """One input after the other, of those that the first operator outside of its domain is computed from."""
        culprits = self.sources[found.lost[0]] if found.lost else frozenset(range(len(profiles)))
        for place in sorted(culprits)[:CULPRITS]:
            for option in self.options:
                other = (*profiles[:place], option, *profiles[place + 1 :])
                tried = self.tried(other)
                if _merit(tried) > _merit(found):
                    profiles, found = other, tried
        return profiles, found

    def further(self, profiles: Profiles, missing: frozenset[Goal]) -> tuple[Profiles, Shown]:
        """Profiles that reach most of the goals that were not reached."""
        tries = [(other, self.tried(other)) for other in self._varied(profiles, missing)]
        return max(tries, key=lambda each: len(each[1].goals & missing) + 2 * each[1].known)

    def _varied(self, profiles: Profiles, missing: frozenset[Goal]) -> Iterator[Profiles]:
        yield profiles
        wanted = sorted(missing)
        for _ in range(CANDIDATES if wanted else 0):
            place, _ = wanted[self.random.integers(len(wanted))]
            sources = sorted(self.sources[place])
            chosen = {k for k in sources if self.random.random() < 0.5} or set(sources[:1])
            options = self._fitting(place)
            yield tuple(
                options[self.random.integers(len(options))] if k in chosen else profile
                for k, profile in enumerate(profiles)
            )

    def _fitting(self, place: int) -> Profiles:
        """What an input may be for the sake of one operator: around a constant of its own, at every second try."""
        own = tuple(Profile("near", float(t.value)) for t in self.desc.ops[place].inputs if t.value is not None)
        return own if own and self.random.random() < 0.5 else self.options


def _merit(found: Shown) -> float:
    """Known results first, then operators that do all that they can."""
    reached = len(found.goals) / max(len(found.goals) + len(found.missing), 1)
    return found.known + 0.2 * reached - 0.1 * bool(found.lost)
