"""What one verification found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a verification ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


FAILURES: dict[str, str] = {
    "wrong-answer": "the kernel's result differs from the reference",
    "bad-description": "the file is no sound description",
    "exception": "compiling or running raised an exception that is not a refusal",
    "unseen": "something that the kernel does at its own size was run at no size",
    "guard": "arrays beside pages without access: other results, or something written beside an array",
    "fault": "the kernel touched a page without access, or needs more alignment than arrays have",
    "checker": "the independent checker found a fault in the finished nest",
    "crash": "the worker process died",
    "time-limit": "the time limit passed",
}
"""Reason codes of failures; those of skipped files are :data:`kernelgen.errors.REASONS`."""


@dataclass(frozen=True)
class Record:
    """One description on one target.

    Times are milliseconds. ``max_error`` is the largest absolute difference of any element, None when nothing was
    compared. ``proof`` counts the facts proved per check. ``scaled`` tells that shapes were shrunk to fit the memory.
    ``own_bytes`` are those of all arguments together at the size that the description has, ``argument_bytes`` at each size
    that was run, in that order. ``features`` are the words of what the kernel does at its own size, each with the bytes of
    the first size at which that ran, 0 for one that never did.
    ``sampled``, for a kernel too large to interpret: how many of its blocks of threads ran, and how many elements they
    wrote, which are those that were compared. Where ``scaled`` holds too, a small kernel of the same operators ran whole
    before it, or, where that is not small enough either, ``blocks`` are those of the scaled one alone.
    ``checked`` names what :mod:`kernelgen.checker` has shown about the kernel, and about a ``small`` one of the same
    operators where the kernel is too large for a run of all iterations.
    ``placements`` is how many ways its arrays lay against pages without access, where that was asked for.
    ``weights`` are the inputs of which a second kernel was told that they are constants, which all that was asked of the first
    was asked of too: ``features`` and counts are those of both.
    """

    name: str
    status: Status
    reason: str = ""
    message: str = ""
    times: Mapping[str, float] = field(default_factory=dict[str, float])
    max_error: float | None = None
    proof: Mapping[str, int] = field(default_factory=dict[str, int])
    scaled: bool = False
    own_bytes: int = 0
    argument_bytes: tuple[int, ...] = ()
    features: Mapping[str, int] = field(default_factory=dict[str, int])
    sampled: Mapping[str, int] = field(default_factory=dict[str, int])
    checked: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    placements: int = 0
    weights: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values, keys in the order of the fields."""
        return asdict(self) | {"status": self.status.value, "times": {k: round(v, 3) for k, v in self.times.items()}}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Record:
        """The inverse of :meth:`to_json`, but for what it rounds."""
        values: dict[str, Any] = {
            **document,
            "status": Status(document["status"]),
            "argument_bytes": tuple(document["argument_bytes"]),
            "checked": {name: tuple(shown) for name, shown in document["checked"].items()},
            "weights": tuple(document["weights"]),
        }
        return Record(**values)


def failed(name: str, reason: str, message: str, **more: Any) -> Record:  # fields of Record
    """A failure with one of the codes of :data:`FAILURES`. Raises ValueError for another code."""
    if reason not in FAILURES:
        raise ValueError(f"failure code {reason!r} is not declared in FAILURES")
    return Record(name, Status.FAILED, reason, message, **more)


def with_run(record: Record, again: Record) -> Record:
    """The ``record`` of a kernel with what one ``again`` that passed took, and with the greater error."""
    errors = [error for error in (record.max_error, again.max_error) if error is not None]
    times = {name: record.times.get(name, 0.0) + again.times.get(name, 0.0) for name in {**record.times, **again.times}}
    return replace(record, times=times, max_error=max(errors, default=None))


def summary(records: Iterable[Record]) -> str:
    """``N passed, N failed``, and ``, N skipped`` when any were."""
    found = [record.status for record in records]
    skipped = found.count(Status.SKIPPED)
    return f"{found.count(Status.PASSED)} passed, {found.count(Status.FAILED)} failed" + (
        f", {skipped} skipped" if skipped else ""
    )


def sizes_run(records: Iterable[Record]) -> str:
    """How many kernels ran at their own size, how many at others, and what of their features that has shown."""
    found = [record for record in records if record.argument_bytes]
    own = [record for record in found if record.own_bytes in record.argument_bytes]
    sampled = sum(bool(record.sampled) for record in own)
    words = [seen for record in found for seen in record.features.values()]
    blocks = f" ({sampled} by a sample of blocks)" if sampled else ""
    return f"{len(own)} of {len(found)} at their own size{blocks}; {sum(map(bool, words))} of {len(words)} features run"
