"""Compiles a random kernel, runs it and compares it with the reference; nothing beside the arrays may be written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

import numpy as np

import kernelgen
from kernelgen.composite import check as desc_check
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.link import linked, unlinked
from kernelgen.enclosure import agree, enclose
from kernelgen.enclosure.table import RULES, Rules
from kernelgen.kernel import Kernel
from kernelgen.targets.base import Target
from kernelgen.verify.compare import difference, tolerances
from kernelgen.verify.guard import between_fences
from kernelgen.verify.known_weights import roundings_of, weights_of
from kernelgen.verify.worker_diary import Diary
from tests.random_kernels.values import Array, Sample

GUARD = 256
"""Bytes on either side of an array."""
GUARD_BYTE = 0xA5


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


def check(sample: Sample, target: str | Target, diary: Diary | None = None) -> Outcome:
    """One kernel on one target; with a diary between pages without access too.

    A CPU's kernel whose description has weights is checked once more as one that knows them before all calls.
    Refusals (UnsupportedError) are skipped, everything else that is not right fails.
    """
    found, weights = _checked(sample, target, diary), weights_of(sample.desc) if target == "cpu" else ()
    return _checked(sample, target, diary, weights) if weights and found.kind is Kind.PASSED else found


def _checked(sample: Sample, target: str | Target, diary: Diary | None, constants: tuple[int, ...] = ()) -> Outcome:
    """The kernel that knows these constants."""
    try:
        desc = desc_check.check(sample.desc)
        kernel = kernelgen.compile(desc, target=target, constants=constants)
    except kernelgen.UnsupportedError as refusal:
        return Outcome(Kind.SKIPPED, refusal.code, str(refusal))
    except Exception as error:  # the report names it
        return _failed("compile", error)
    if kernel.nest.body.statements and not {"bounds", "legality"} <= {fact.check for fact in kernel.proof.facts}:
        return Outcome(Kind.FAILED, "proof", f"only {sorted({fact.check for fact in kernel.proof.facts})} were proved")
    if diary:
        diary.begin()
    outcomes = (_compared(replace(sample, inputs=inputs), kernel, diary) for inputs in (sample.inputs, *sample.others))
    return next((outcome for outcome in outcomes if outcome.kind is Kind.FAILED), Outcome(Kind.PASSED))


def _compared(sample: Sample, kernel: Kernel, diary: Diary | None) -> Outcome:
    """Runs the kernel on outputs that hold rubbish; inputs that are not updated must stay as they are.

    The results are held against the reference, within what the generator of kernels foresees, and against error bounds.
    Kernels that take rows as fixed point round as no reference does: bounds alone say what is right.

    All arrays lie between guards, at places that are aligned to their elements and no more.
    """
    wanted_inputs = copies(sample.inputs)
    try:
        wanted = kernelgen.reference(sample.desc)(*wanted_inputs)
    except Exception as error:
        return _failed("reference", error)
    guarded = [_Guarded.like(array, number) for number, array in enumerate((*wanted, *sample.inputs))]
    outputs, inputs = ([each.array for each in part] for part in (guarded[: len(wanted)], guarded[len(wanted) :]))
    for place, array in zip(inputs, sample.inputs, strict=True):
        place[...] = array
    try:
        kernel(*kernel.call_inputs(inputs), out=outputs)
    except Exception as error:
        return _failed("run", error)
    names = [t.name for t in (*sample.desc.outputs, *sample.desc.inputs)]
    spilt = [name for name, each in zip(names, guarded, strict=True) if each.is_spoiled]
    if spilt:
        return Outcome(Kind.FAILED, "out-of-bounds", f"something was written beside {', '.join(spilt)}")
    allowed, rules = tolerances(sample.desc), roundings_of(kernel)
    results = zip(names, (*outputs, *inputs), (*wanted, *wanted_inputs), strict=True)
    for name, found, expected in islice(results, 0 if rules is RULES else len(outputs), None):
        fault = difference(found, expected, max(allowed[name], sample.errors.get(name, 0.0))).fault
        if fault:
            return Outcome(Kind.FAILED, "wrong-answer", f"{name}: {fault}")
    fault = _rounding_fault(sample, names, outputs, inputs, rules)
    if fault:
        return Outcome(Kind.FAILED, "rounding", fault)
    return _fenced(sample, kernel, wanted, diary) if diary else Outcome(Kind.PASSED)


def _rounding_fault(
    sample: Sample, names: Sequence[str], outputs: Sequence[Array], inputs: Sequence[Array], rules: Rules
) -> str:
    """What lies outside of the ranges that the ``rules`` of the operators allow; nothing for an operator without a bound."""
    try:
        ranges = enclose(sample.desc, sample.inputs, rules)
    except kernelgen.UnsupportedError:
        return ""
    updated = sample.desc.updated_inputs
    names = [*names[: len(outputs)], *(sample.desc.inputs[i].name for i in updated)]
    return agree(names, [*outputs, *(inputs[i] for i in updated)], ranges).fault


def _fenced(sample: Sample, kernel: Kernel, like: Sequence[Array], diary: Diary) -> Outcome:
    """The same results with every array against pages without access."""
    outputs = [_Guarded.like(array, 0).array for array in like]
    _, fault = between_fences(kernel, copies(sample.inputs), outputs, diary)
    return Outcome(Kind.FAILED, "guard", fault) if fault else Outcome(Kind.PASSED)


def copies(arrays: Sequence[Array]) -> list[Array]:
    """Arrays that may be written to."""
    return [np.array(array) for array in arrays]


def references(desc: KernelDesc, inputs: Sequence[Array], names: Sequence[str]) -> list[Array]:
    """The values of named tensors of a kernel."""
    document = unlinked(desc)
    known = {t.name: t for op in document.ops for t in op.outs}
    wanted = replace(document, outputs=tuple(known[name] for name in names), buffer_stitch=(), parallel_fusion=None)
    return list(kernelgen.reference(linked(wanted))(*copies(inputs)))


@dataclass(frozen=True)
class _Guarded:
    """An array of rubbish inside of a larger one of known bytes."""

    before: Array
    array: Array
    after: Array

    @staticmethod
    def like(array: Array, number: int) -> _Guarded:
        """A place for an array of that shape and data type, ``number`` elements from an aligned address."""
        first = GUARD + number * array.itemsize
        raw = np.full(first + array.nbytes + GUARD, GUARD_BYTE, np.uint8)
        inside = raw[first : first + array.nbytes]
        inside[...] = 0 if array.dtype == bool else 0xFF
        return _Guarded(raw[:first], inside.view(array.dtype).reshape(array.shape), raw[first + array.nbytes :])

    @property
    def is_spoiled(self) -> bool:
        """Whether a byte beside the array has changed."""
        return bool((self.before != GUARD_BYTE).any() or (self.after != GUARD_BYTE).any())


def _failed(stage: str, error: Exception) -> Outcome:
    return Outcome(Kind.FAILED, f"{stage} {type(error).__name__}", f"{type(error).__name__}: {error}"[:2000])
