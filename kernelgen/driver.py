"""compile(desc, target): the story of a kernel in one function."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from kernelgen.composite.check import check
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.size_limits import within_limits
from kernelgen.errors import ArgumentError, UnsupportedError
from kernelgen.kernel import Kernel, Resources, fingerprint, signature_of
from kernelgen.machines.usual import Machine
from kernelgen.nest.nodes import Nest, Space
from kernelgen.plan import CodePlan, Plan
from kernelgen.poly.proof.schedule_proof import Fact, Proof
from kernelgen.stage_log import Trail
from kernelgen.stages import Lowered, lower
from kernelgen.targets import Target, find_target
from kernelgen.tensor.dims import Sym, product


def compile(desc: KernelDesc, target: str | Target = "cpu", plan: Plan | None = None) -> Kernel:
    """Lowers, proves, prints and loads a description.

    ``plan`` overrides what would be chosen, see :mod:`kernelgen.plan`. Raises DescError (with the path of the culprit)
    for a description that is not sound, UnsupportedError (with a reason code) for what the target cannot do, ProofError
    when a proof fails, ArgumentError when the plan does not fit the description, BackendUnavailable when the target
    needs something that is not installed.
    """
    if not isinstance(desc, KernelDesc):  # pyright: ignore[reportUnnecessaryIsInstance]  # a path is easily given
        raise ArgumentError(f"compile takes a KernelDesc, got {type(desc).__name__}; kernelgen.load_desc reads one")
    check(desc)
    within_limits(desc)
    found = find_target(target)
    plan = plan or Plan(cpu=found.sizes())
    if plan.subject and plan.subject != (own := fingerprint(desc)):
        raise ArgumentError(
            f"the plan was made for {plan.subject}, this is {own}; an empty subject fits any description"
        )
    lowered = _lowered(desc, plan, found.machine)
    nest, trail = lowered.nest, lowered.trail
    source, code = _printed(found, nest, plan.code, trail)
    lowered = _with_claims(found, source, lowered)
    entry = trail.run("load", lambda: found.load(source, nest))
    resources = Resources(trail.milliseconds, _bytes(nest, workspace=False), _bytes(nest, workspace=True), entry)
    lowered = replace(lowered, plan=replace(lowered.plan, code=code))
    return Kernel(signature_of(desc, nest), entry, desc, found.name, source, lowered, resources)


def _printed(target: Target, nest: Nest, code: CodePlan | None, trail: Trail) -> tuple[str, CodePlan | None]:
    """The source and the choices that it follows; None of a target that makes none, which takes no notice of given ones."""
    printer = target.printer
    if printer is None:
        return trail.run("source", lambda: target.emit(nest)), None
    choices = trail.run("choices", lambda: printer.choose(nest) if code is None else code)
    return trail.run("source", lambda: printer.emit(nest, choices)), choices


def _with_claims(target: Target, source: str, lowered: Lowered) -> Lowered:
    """With a fact for each function of the source that claims more than every place and number has."""
    if target.claims is None:
        return lowered
    shown = lowered.trail.run("claims", partial(target.claims, source))
    facts = [Fact("claims", f"@{name}", f"{{ claim of {count} : does not hold }}") for name, count in shown.items()]
    return replace(lowered, proof=Proof((*lowered.proof.facts, *facts))) if facts else lowered


def _lowered(desc: KernelDesc, plan: Plan, machine: Machine | str) -> Lowered:
    """All stages; expressions that nest deeper than Python's stack are refused."""
    try:
        return lower(desc, plan, machine)
    except RecursionError:
        message = f"{desc.name}: expressions of its {len(desc.ops)} operators nest too deeply; split the kernel"
        raise UnsupportedError("budget", message) from None


def _bytes(nest: Nest, workspace: bool) -> int | None:
    total = 0
    for buffer in nest.buffers:
        size = product(buffer.shape)
        if isinstance(size, Sym):
            return None
        total += size * buffer.dtype.itemsize if (buffer.space is Space.WORKSPACE) == workspace else 0
    return total
