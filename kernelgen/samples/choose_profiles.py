"""A profile for every input: those that keep a small kernel of the same operators in their domains and show the most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kernelgen.composite.description import KernelDesc, number_of
from kernelgen.enclosure import enclosed_values
from kernelgen.errors import UnsupportedError
from kernelgen.samples.goals import Goal, Shown, shown
from kernelgen.samples.index_inputs import index_inputs
from kernelgen.samples.inputs import atomic_targets
from kernelgen.samples.marks import structured
from kernelgen.samples.profiles import PLAIN, Array, Profile, Random
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.matmul import STORED_MATMUL

Profiles = tuple[Profile, ...]

ALL_BYTES = Profile("large")

ENOUGH = 0.9
"""A share of known results that is not looked to be improved."""
PASSES = 2
CULPRITS = 5
"""Inputs that are varied where an operator leaves its domain."""
CANDIDATES = 16
"""Draws that are tried for the sake of goals that were not reached, for each round."""


@dataclass(frozen=True)
class Recipe:
    """Profiles of all inputs and a seed. Inputs of one element are the same for all sizes of the others."""

    profiles: Profiles
    seed: int

    def draw(self, desc: KernelDesc) -> list[Array]:
        """One array per input of a description without symbols; indices fit, cleared targets are zero, and weights that are
        stored as bytes have any, which may be two numbers each."""
        indices, cleared = index_inputs(desc, np.random.default_rng(self.seed)), atomic_targets(desc)
        stored = {node.args[1] for node in desc.operators if node.op is STORED_MATMUL and node.args[1].dtype.is_integer}
        drawn: list[Array] = []
        for place, (value, profile) in enumerate(zip(desc.graph.inputs, self.profiles, strict=True)):
            random = np.random.default_rng([self.seed, place])
            shape = tuple(int(dim) for dim in value.shape)  # pyright: ignore[reportArgumentType]  # specialised
            if value in indices:
                drawn.append(indices[value])
            elif value in cleared:
                drawn.append(np.zeros(shape, value.dtype.numpy))
            else:
                kind = ALL_BYTES if value in stored else profile
                drawn.append(structured(kind.draw(value.dtype, shape, random), random))
        return drawn

    def with_profiles(self, profiles: Profiles) -> Recipe:
        """The same seed for other profiles."""
        return Recipe(profiles, self.seed)


@dataclass(frozen=True)
class Chooser:
    """Tries profiles on a small description without symbols."""

    desc: KernelDesc
    random: Random

    @cached_property
    def options(self) -> Profiles:
        """What an input may be."""
        centres = {number for node in self.desc.operators for number in _constants(node)}
        return (*PLAIN, *(Profile("near", centre) for centre in sorted(centres)[:6]))

    @cached_property
    def sources(self) -> Mapping[int, frozenset[int]]:
        """Operator, by its place -> the inputs that it is computed from."""
        known = {value: frozenset({place}) for place, value in enumerate(self.desc.graph.inputs)}
        found: dict[int, frozenset[int]] = {}
        for place, node in enumerate(self.desc.operators):
            found[place] = frozenset[int]().union(*(known[value] for value in node.args if value.constant is None))
            known |= dict.fromkeys(node.outs, found[place])
        return found

    def tried(self, recipe: Recipe) -> Shown:
        """What one draw shows."""
        try:
            return shown(self.desc, enclosed_values(self.desc, recipe.draw(self.desc)))
        except UnsupportedError:
            return Shown(1.0, frozenset(), frozenset(), ())

    def best(self) -> tuple[Recipe, Shown]:
        """Profiles with which most results are known."""
        count = len(self.desc.inputs)
        recipe = Recipe((PLAIN[0],) * count, self._seed())
        found = self.tried(recipe)
        if _merit(found) < ENOUGH:
            for option in PLAIN[1:6]:
                other = recipe.with_profiles((option,) * count)
                tried = self.tried(other)
                if _merit(tried) > _merit(found):
                    recipe, found = other, tried
        for _ in range(PASSES):
            if _merit(found) < ENOUGH:
                recipe, found = self._improved(recipe, found)
        return recipe, found

    def _improved(self, recipe: Recipe, found: Shown) -> tuple[Recipe, Shown]:
        """One input after the other, of those that the first operator outside of its domain is computed from."""
        culprits = self.sources[found.lost[0]] if found.lost else frozenset(range(len(recipe.profiles)))
        for place in sorted(culprits)[:CULPRITS]:
            for option in self.options:
                other = recipe.with_profiles((*recipe.profiles[:place], option, *recipe.profiles[place + 1 :]))
                tried = self.tried(other)
                if _merit(tried) > _merit(found):
                    recipe, found = other, tried
        return recipe, found

    def further(self, recipe: Recipe, missing: frozenset[Goal]) -> tuple[Recipe, Shown]:
        """A draw that reaches most of the goals that were not reached."""
        tries = [(other, self.tried(other)) for other in self._varied(recipe.profiles, missing)]
        return max(tries, key=lambda each: len(each[1].goals & missing) + 2 * each[1].known)

    def _varied(self, profiles: Profiles, missing: frozenset[Goal]) -> Iterator[Recipe]:
        yield Recipe(profiles, self._seed())
        wanted = sorted(missing)
        for _ in range(CANDIDATES if wanted else 0):
            place, _ = wanted[self.random.integers(len(wanted))]
            sources = sorted(self.sources[place])
            chosen = {k for k in sources if self.random.random() < 0.5} or set(sources[:1])
            options = self._fitting(place)
            others = [options[self.random.integers(len(options))] for _ in profiles]
            yield Recipe(tuple(others[k] if k in chosen else p for k, p in enumerate(profiles)), self._seed())

    def _fitting(self, place: int) -> Profiles:
        """What an input may be for the sake of one operator: around a constant of its own, at every second try."""
        own = tuple(Profile("near", number) for number in _constants(self.desc.operators[place]))
        return own if own and self.random.random() < 0.5 else self.options

    def _seed(self) -> int:
        return int(self.random.integers(2**31))


def _constants(node: Node) -> Iterator[float]:
    """The constants among an operator's operands; of a complex one the real part."""
    for value in node.args:
        number = number_of(value)
        if number is not None:
            yield float(number.real)


def _merit(found: Shown) -> float:
    """Known results first, then operators that do all that they can."""
    reached = len(found.goals) / max(len(found.goals) + len(found.missing), 1)
    return found.known + 0.2 * reached - 0.1 * bool(found.lost)
