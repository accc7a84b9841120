"""When a step of the pipeline may run, besides its level: predicates of the options, with the words that say them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphkernel.options import Options


@dataclass(frozen=True)
class Condition:
    """A predicate of the options, with the words that say it."""

    text: str
    holds: Callable[[Options], bool]

    def __call__(self, options: Options) -> bool:
        """True when the step may run."""
        return self.holds(options)

    def __and__(self, other: Condition) -> Condition:
        """Both must hold."""
        text = " and ".join(f"({part})" if " or " in part else part for part in (self.text, other.text))
        return Condition(text, lambda options: self(options) and other(options))

    def __or__(self, other: Condition) -> Condition:
        """One must hold."""
        text = " or ".join(f"({part})" if " and " in part else part for part in (self.text, other.text))
        return Condition(text, lambda options: self(options) or other(options))


always = Condition("", lambda options: True)
"""The condition of steps that do not depend on target or flags."""

by_name = Condition("enable_pass names it", lambda options: False)
"""The condition of steps that MindSpore runs for what kernels do themselves here."""

dvm = Condition("kernel_generator DVM", lambda options: options.generator == "DVM")
"""Steps that MindSpore runs for its own kernels of Ascend."""

not_dvm = Condition("kernel_generator not DVM", lambda options: options.generator != "DVM")
"""Steps that those kernels do not need."""


def on(*targets: str) -> Condition:
    """Holds for these targets."""
    return Condition(" or ".join(targets), lambda options: options.target in targets)


def flag(name: str) -> Condition:
    """Holds when the flag is true, or above 0, whether it was given or follows from the level."""
    return Condition(name, lambda options: options.is_on(name))


def without(name: str) -> Condition:
    """Holds when the flag is false."""
    return Condition(f"not {name}", lambda options: not options.is_on(name))


def level(least: int) -> Condition:
    """Holds from this opt_level on; for steps that a flag brings in at lower levels."""
    return Condition(f"opt_level {least}", lambda options: options.opt_level >= least)


RECOMPUTES = flag("recompute_increment_threshold") | flag("recompute_peak_threshold") | flag("enable_csr_fusion")
"""Values may be computed a second time between kernels."""

PACKETS = on("ascend") & flag("enable_kernel_packet")
"""Operators outside of kernels take small computations along."""
