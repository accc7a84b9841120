"""What was found out about kernels, in a file of JSON lines: an input of optimize and compile, which never measure.

The file is a journal of :mod:`kernelgen.farm`; its answers are :class:`Finding` as JSON. A kernel is known by its description
without its name, so that networks share what they have in common; a finding holds for its target and its machine alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from typing import Any, NamedTuple

from kernelgen import options
from kernelgen.errors import ArgumentError
from kernelgen.farm.journal import entries
from kernelgen.native.processor import processor
from kernelgen.strict_json import from_json
from kernelgen.system.bounded_io import read_bytes

MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Bounds:
    """A ratio of times: tuned by untuned. ``low`` and ``high`` hold the median of many in 95 cases of 100."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Finding:
    """What tuning a kernel gave: a ``plan`` as JSON text, empty where the kernel's own is the best or nothing is certain.

    ``ratio`` is the time with the best plan as a multiple of the untuned one's, ``noise`` how far the untuned kernel's
    time was from its own, measured the same way. ``seconds`` is the untuned kernel's. ``changes`` leads to the plan.
    ``source`` is the digest of the kernel's text with the plan: following it gives the same.
    """

    kernel: str
    target: str
    machine: str
    versions: tuple[str, ...]
    plan: str
    ratio: Bounds
    noise: float
    seconds: float
    changes: tuple[str, ...]
    trials: int
    source: str


def digest_of(source: str) -> str:
    """A kernel's text in few characters."""
    return hashlib.sha256(source.encode()).hexdigest()[:32]


class Subject(NamedTuple):
    """A kernel as tuning knows it: composite JSON, and the positions of inputs that hold the same in every call.

    What such inputs alone decide is computed before all calls, so that the kernel is another one than without them.
    """

    description: Mapping[str, Any]
    constants: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """What it is known by: a digest of all but the name."""
        nameless = {name: value for name, value in self.description.items() if name != "op"}
        known = [nameless, sorted(self.constants)] if self.constants else nameless
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:32]


def machine_here() -> str:
    """The processor's model and the threads that a kernel may use, in words."""
    return f"{_processor()}; {options.thread_count()} threads"


@cache
def _processor() -> str:
    here = processor()
    return f"{here.architecture}; {'; '.join(here.identity)}"


class Tunings:
    """Findings by kernel, those of this machine."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(found for found in findings if found.machine == machine_here())
        self._plans = {(found.kernel, found.target): found.plan for found in reversed(self.findings)}

    @staticmethod
    def of(given: Tunings | str | PathLike[str]) -> Tunings:
        """Those in a file, or given as they are. Raises ArgumentError as :meth:`read` does."""
        return given if isinstance(given, Tunings) else Tunings.read(given)

    @staticmethod
    def read(path: str | PathLike[str]) -> Tunings:
        """Those in a file. Raises ArgumentError for a file that cannot be read or is something else."""
        content = read_bytes(path, ArgumentError, MOST_BYTES)
        return Tunings(from_json(Finding, answer) for _, answer in entries(content, str(path)))

    def plan(self, subject: Subject, target: str) -> str:
        """The plan of a kernel as JSON text; empty where nothing better than its own is known."""
        return self._plans.get((subject.key, target), "")

    @property
    def digest(self) -> str:
        """Tells one set of plans from another."""
        return hashlib.sha256(repr(sorted(self._plans.items())).encode()).hexdigest()
