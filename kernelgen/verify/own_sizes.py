"""What a kernel does at the size that its file has, and at which sizes all of that was run.

A kernel that is too large for an interpreter runs at others: first small and whole, then at the largest that is affordable,
then at more until every feature of the real kernel has run. One that never ran is a failure. Of large kernels a sample of
blocks runs; where that writes no result, since later launches need what all blocks of the first leave behind, the smallest
kernel that shows what is missing runs whole. What pays for large kernels only is seen in a small one that is compiled as a
model of the large one: with what pays there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

from kernelgen.composite.description import KernelDesc
from kernelgen.errors import UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.nest import features
from kernelgen.samples.inputs import bind_symbols
from kernelgen.samples.smaller_shapes import First, argument_bytes, shrink
from kernelgen.targets.entries import FeaturedEntry
from kernelgen.verify.record import Record, Status, with_run

KB, MB = 1 << 10, 1 << 20
SIZES = MappingProxyType(
    {
        "gpu": (32 * MB, 128 * MB, 640 * MB, 16 * MB, 8 * MB, 2 * MB, 512 * KB),
        "ascend": (16 * MB, 64 * MB, 128 * MB, 8 * MB, 4 * MB, 2 * MB, 1 * MB, 512 * KB, 128 * KB, 32 * KB),
    }
)
"""For interpreted targets, bytes of arguments: the first is what a kernel keeps of its size where it takes seconds, larger
ones and then smaller ones are for features that are still to be seen, or for where it would take minutes."""

WHOLE_SIZES = (512 * MB,)
"""The same for targets whose kernels run as they are."""


WHOLE_AT_MOST = 640 * MB
"""Bytes of arguments of a kernel that an interpreter runs whole for the sake of a feature: it takes minutes, and the ranges of
all its values twenty times the memory."""

Verify = Callable[[KernelDesc, object], Record]


@dataclass(frozen=True)
class Runs:
    """How a description is compiled, and how what was compiled is verified, by a sample of its blocks where there are
    such, and whole; ``family`` is the target's. ``model`` compiles one that stands for another, so many times as large."""

    family: str
    compiled: Callable[[KernelDesc], object]
    model: Callable[[KernelDesc, int], object]
    by_sample: Verify
    whole: Verify


def features_of(kernel: object) -> frozenset[str]:
    """What a kernel does at its own size; nothing for what is no :class:`Kernel`."""
    if not isinstance(kernel, Kernel):
        return frozenset()
    sizes = bind_symbols(kernel.desc)
    sizes = {name: sizes[name] for name in kernel.nest.symbols}
    if isinstance(kernel.entry, FeaturedEntry):
        return kernel.entry.features(tuple(sizes.values()))
    return features.features_of(kernel.whole_nest, sizes)


def with_own_features(record: Record, desc: KernelDesc, runs: Runs, byte_limit: int) -> Record:
    """The record of a small kernel that passed, with those of larger ones, until all that ``desc`` does has been run.

    Fails with "unseen" where that cannot be, and with the failure of a larger one. Raises UnsupportedError where the
    target refuses the description at its own size.
    """
    wanted, own = features_of(runs.compiled(desc)), argument_bytes(desc)
    found = replace(record, features={word: record.features.get(word, 0) for word in sorted(wanted)})
    tried = list(_sizes(desc, runs.family, byte_limit, record.argument_bytes))
    small = sorted((each for each in tried if each[0] <= WHOLE_AT_MOST), key=lambda each: each[0])
    models = small if runs.family in SIZES else []
    for size, larger, compiled, verify in (
        *((*each, runs.compiled, runs.by_sample) for each in tried),
        *((*each, lambda of, times=own // each[0]: runs.model(of, times), runs.whole) for each in models),
        *((*each, runs.compiled, runs.whole) for each in small),
    ):
        found = _with_size(found, size, larger, replace(runs, compiled=compiled), verify)
        if found.status is not Status.PASSED:
            return found
    unseen = [word for word, size in found.features.items() if not size]
    return found if not unseen else replace(found, status=Status.FAILED, reason="unseen", message="; ".join(unseen))


def _with_size(record: Record, size: int, desc: KernelDesc, runs: Runs, verify: Verify) -> Record:
    """The record with what a kernel of this size has shown, where it has anything new to show and can be run."""
    missing = {word for word, seen in record.features.items() if not seen}
    first = runs.family in SIZES and len(record.argument_bytes) == 1
    if not missing and not first:
        return record
    kernel = runs.compiled(desc)
    if not first and not missing & features_of(kernel):
        return record
    try:
        return _joined(record, verify(desc, kernel), size)
    except UnsupportedError:
        return record


def _sizes(desc: KernelDesc, family: str, byte_limit: int, ran: tuple[int, ...]) -> Iterator[tuple[int, KernelDesc]]:
    """Kernels of other sizes and their bytes, as they are worth trying: those of long rows and of whole results last."""
    known = set(ran)
    limits = SIZES.get(family, WHOLE_SIZES)
    for first, limit in product(First, limits):
        larger = shrink(desc, min(limit, 4 * byte_limit), first)
        size = argument_bytes(larger)
        if size not in known and size <= 4 * limit:
            known.add(size)
            yield size, larger


def _joined(record: Record, again: Record, size: int) -> Record:
    """One record of both."""
    sizes = (*record.argument_bytes, size)
    if again.status is not Status.PASSED:
        return replace(again, argument_bytes=sizes, features=record.features)
    return replace(
        with_run(record, again),
        sampled=again.sampled or record.sampled,
        argument_bytes=sizes,
        features={word: seen or again.features.get(word, 0) for word, seen in record.features.items()},
    )
