"""The trail of a compilation: what every stage produced, as text on demand, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass
class Trail:
    """Filled by :meth:`run`, stage by stage, in order."""

    texts: dict[str, Callable[[], str]] = field(default_factory=dict[str, Callable[[], str]])
    milliseconds: dict[str, float] = field(default_factory=dict[str, float])

    def run(self, stage: str, work: Callable[[], T], show: Callable[[T], str] = str) -> T:
        """Does the work of a stage and keeps its product's text (made only when somebody reads it) and time."""
        start = time.perf_counter()
        product = work()
        self.milliseconds[stage] = (time.perf_counter() - start) * 1e3
        self.texts[stage] = lambda: show(product)
        return product

    def branch(self) -> Trail:
        """The same stages so far, for another end."""
        return Trail(dict(self.texts), dict(self.milliseconds))
