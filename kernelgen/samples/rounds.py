"""The draws on which a kernel runs: most of its operators' sides, the others, large numbers, special numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.specialize import specialize
from kernelgen.samples.choose_profiles import Chooser, Recipe
from kernelgen.samples.index_inputs import index_inputs
from kernelgen.samples.inputs import bind_symbols
from kernelgen.samples.marks import with_special_numbers
from kernelgen.samples.profiles import Array, Profile
from kernelgen.samples.smaller_shapes import shrink

SMALL_BYTES = 8 << 10
"""Arguments of the kernel on which profiles are tried."""
LARGER = {"signed": "large", **dict.fromkeys(("positive", "at least 0", "above 1"), "big")}
"""Kind of profile -> the kind of larger numbers of the same domain."""
FURTHER = 3
"""Draws for what the first one does not show."""
SPECIAL = 3
"""Draws of special numbers: the first, then, where small kernels run on all draws, the others at the end."""


def trials(desc: KernelDesc, seed: int = 0, sizes: Mapping[str, int] | None = None) -> Iterator[list[Array]]:
    """Eight draws of all inputs, the most telling one first, that of special numbers second; the same for a seed.

    Symbols get ``sizes``, else those of :func:`kernelgen.samples.inputs.bind_symbols`.
    """
    desc = specialize(desc, bind_symbols(desc) if sizes is None else sizes)
    chooser = Chooser(shrink(desc, SMALL_BYTES), np.random.default_rng(seed))
    first, found = chooser.best()
    others, missing = list[Recipe](), found.missing
    for _ in range(FURTHER):
        more, found = chooser.further(first, missing)
        others.append(more)
        missing -= found.goals
    yield first.draw(desc)
    yield _special(desc, first, 0)
    yield from (recipe.draw(desc) for recipe in (*others, _large(first)))
    yield from (_special(desc, first, number) for number in range(1, SPECIAL))


def _large(recipe: Recipe) -> Recipe:
    """Large numbers where any will do: what is shifted to keep an exponential small must be."""
    return recipe.with_profiles(
        tuple(Profile(LARGER.get(each.kind, each.kind), each.centre) for each in recipe.profiles)
    )


def _special(desc: KernelDesc, recipe: Recipe, number: int) -> list[Array]:
    random = np.random.default_rng([recipe.seed, len(desc.inputs), number])
    indices = index_inputs(desc, random)
    return [
        value if tensor.name in indices else with_special_numbers(value, tensor.dtype, random, place + number)
        for place, (tensor, value) in enumerate(zip(desc.inputs, recipe.draw(desc), strict=True))
    ]
