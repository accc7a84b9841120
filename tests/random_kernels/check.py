"""Compiles a random kernel, runs it and compares it with the reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

import kernelgen
from kernelgen import desc_check
from kernelgen.desc import KernelDesc
from kernelgen.kernel import Kernel
from kernelgen.targets.base import Target
from kernelgen.verify.compare import difference, tolerances
from tests.random_kernels.values import Array, Sample


class Kind(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """``reason`` is a code of :data:`kernelgen.errors.REASONS` for what was skipped, else one word for the failure."""

    kind: Kind
    reason: str = ""
    message: str = ""

    @property
    def subject(self) -> str:
        """The operator that a refusal is about, else the beginning of the message; for counting."""
        named = re.search(r"operator '(\w+)'|\] (\w+)[:,]", self.message)
        return next(filter(None, named.groups()), "") if named else self.message.partition("] ")[2][:60]

    def resembles(self, other: Outcome) -> bool:
        """Whether both are the same failure as far as one can tell: a smaller kernel must not fail in another way."""
        return (self.kind, self.reason) == (other.kind, other.reason)


def check(sample: Sample, target: str | Target) -> Outcome:
    """One kernel on one target. Refusals (UnsupportedError) are skipped, everything else that is not right fails."""
    try:
        desc = desc_check.check(sample.desc)
        kernel = kernelgen.compile(desc, target=target)
    except kernelgen.UnsupportedError as refusal:
        return Outcome(Kind.SKIPPED, refusal.code, str(refusal))
    except Exception as error:  # the report names it
        return _failed("compile", error)
    if kernel.nest.body.statements and not {"bounds", "legality"} <= {fact.check for fact in kernel.proof.facts}:
        return Outcome(Kind.FAILED, "proof", f"only {sorted({fact.check for fact in kernel.proof.facts})} were proved")
    outcomes = (_compared(replace(sample, inputs=inputs), kernel) for inputs in (sample.inputs, *sample.others))
    return next((outcome for outcome in outcomes if outcome.kind is Kind.FAILED), Outcome(Kind.PASSED))


def _compared(sample: Sample, kernel: Kernel) -> Outcome:
    """Runs the kernel on outputs that hold rubbish; inputs that are not updated must stay as they are."""
    wanted_inputs = copies(sample.inputs)
    try:
        wanted = kernelgen.reference(sample.desc)(*wanted_inputs)
    except Exception as error:
        return _failed("reference", error)
    inputs, outputs = copies(sample.inputs), [_spoiled(array) for array in wanted]
    try:
        kernel(*inputs, out=outputs)
    except Exception as error:
        return _failed("run", error)
    names = [t.name for t in (*sample.desc.outputs, *sample.desc.inputs)]
    allowed = tolerances(sample.desc)
    for name, found, expected in zip(names, (*outputs, *inputs), (*wanted, *wanted_inputs), strict=True):
        fault = difference(found, expected, max(allowed[name], sample.errors.get(name, 0.0))).fault
        if fault:
            return Outcome(Kind.FAILED, "wrong-answer", f"{name}: {fault}")
    return Outcome(Kind.PASSED)


def copies(arrays: Sequence[Array]) -> list[Array]:
    """Arrays that may be written to."""
    return [np.array(array) for array in arrays]


def references(desc: KernelDesc, inputs: Sequence[Array], names: Sequence[str]) -> list[Array]:
    """The values of named tensors of a kernel."""
    known = {t.name: t for op in desc.ops for t in op.outputs}
    wanted = KernelDesc(desc.name, desc.inputs, tuple(known[name] for name in names), desc.ops)
    return list(kernelgen.reference(wanted)(*copies(inputs)))


def _spoiled(like: Array) -> Array:
    spoiled = np.empty_like(like, order="C")
    spoiled.reshape(-1).view(np.uint8)[...] = 0 if like.dtype == bool else 0xFF
    return spoiled


def _failed(stage: str, error: Exception) -> Outcome:
    return Outcome(Kind.FAILED, f"{stage} {type(error).__name__}", f"{type(error).__name__}: {error}"[:2000])
