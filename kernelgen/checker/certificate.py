"""The certificate of a kernel: the relations that were proved empty, and what the checker found without them.

It is plain data: it prints as text, goes to JSON and comes back equal. Certifying its nest once more gives an equal one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from kernelgen.checker.run import check
from kernelgen.composite.description import KernelDesc
from kernelgen.nest.nodes import Nest
from kernelgen.nest.text import show
from kernelgen.strict_json import from_json, to_json


class Claim(Protocol):
    """A fact of a proof: ``relation`` is empty."""

    @property
    def check(self) -> str:
        """The kind of fact."""
        ...

    @property
    def subject(self) -> str:
        """What it is about."""
        ...

    @property
    def relation(self) -> str:
        """The relation that is empty."""
        ...


@dataclass(frozen=True)
class Certificate:
    """``nest`` is the SHA-256 of the nest's text, ``claims`` are (check, subject, relation), ``runs`` what was looked at."""

    kernel: str
    nest: str
    claims: tuple[tuple[str, str, str], ...]
    shown: tuple[str, ...]
    runs: tuple[str, ...]
    fault: str = ""

    def __str__(self) -> str:
        head = [f"kernel {self.kernel}", f"nest {self.nest}"]
        proved = [f"proved  {check:<10} {subject}: {relation} is empty" for check, subject, relation in self.claims]
        return "\n".join([*head, *proved, *(f"checked {run}" for run in self.runs)])

    def to_json(self) -> dict[str, Any]:
        """Plain values, keys in the order of the fields."""
        return to_json(self)

    @staticmethod
    def from_json(document: object) -> Certificate:
        """The certificate that :meth:`to_json` wrote. Raises ArgumentError with the path of what is wrong."""
        return from_json(Certificate, document)


def certify(nest: Nest, claims: Iterable[Claim], desc: KernelDesc | None = None) -> Certificate:
    """Checks the nest and writes down what was found next to what had been proved."""
    found = check(nest, desc)
    return Certificate(
        nest.name,
        hashlib.sha256(show(nest).encode()).hexdigest(),
        tuple((claim.check, claim.subject, claim.relation) for claim in claims),
        found.shown,
        tuple(map(str, found.runs)),
        str(found.fault or ""),
    )
