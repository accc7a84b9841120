"""compile(desc, target): the story of a kernel in one function."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from kernelgen.composite.check import check
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.size_limits import within_limits
from kernelgen.errors import ArgumentError, UnsupportedError
from kernelgen.kernel import Kernel, Resources, fingerprint, preparation_signature, signature_of
from kernelgen.machines.usual import Machine
from kernelgen.native.call import NativeKernel
from kernelgen.nest.nodes import Nest, Space
from kernelgen.plan import CodePlan, Plan
from kernelgen.poly.proof.schedule_proof import Fact, Proof
from kernelgen.stage_log import Trail
from kernelgen.stages import Lowered, lower
from kernelgen.targets import Target, find_target
from kernelgen.tensor.dims import Sym, product


def compile(
    desc: KernelDesc,
    target: str | Target = "cpu",
    plan: Plan | None = None,
    constants: Collection[int] = (),
) -> Kernel:
    """Lowers, proves, prints and loads a description.

    ``plan`` overrides what would be chosen, see :mod:`kernelgen.plan`. ``constants`` are positions of inputs that hold the
    same in every call: what they alone decide is computed once, by :meth:`kernelgen.kernel.Kernel.prepare`, where the target
    gains by that. Raises DescError (with the path of the culprit)
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
    fixed = _fixed(desc, constants)
    lowered = _lowered(desc, plan, found.machine, fixed)
    nest, trail = lowered.nest, lowered.trail
    source, code = _printed(found, nest, plan.code, trail)
    lowered = _with_claims(found, source, lowered)
    entry = trail.run("load", lambda: found.load(source, nest))
    preparation = None
    if nest.preparation is not None:
        preparation = trail.run("preparation", partial(_preparation, found, desc, lowered, nest.preparation))
    resources = Resources(trail.milliseconds, _bytes(nest, workspace=False), _bytes(nest, workspace=True), entry)
    lowered = replace(lowered, plan=replace(lowered.plan, code=code))
    return Kernel(
        signature_of(desc, lowered),
        entry,
        desc,
        found.name,
        source,
        lowered,
        resources,
        preparation,
        tuple(sorted(fixed)),
    )


def _fixed(desc: KernelDesc, constants: Collection[int]) -> frozenset[int]:
    """The positions of constants. Raises ArgumentError for one that no input has, or one of an input that is updated."""
    for position in constants:
        if not 0 <= position < len(desc.inputs) or position in desc.updated_inputs:
            raise ArgumentError(f"{desc.name}: input {position} cannot be constant: it is updated, or there is none")
    return frozenset(constants)


def _preparation(target: Target, desc: KernelDesc, lowered: Lowered, nest: Nest) -> NativeKernel:
    """What computes the inputs of the nest that constants decide."""
    source = target.emit(nest)
    if target.claims is not None:
        target.claims(source)
    return NativeKernel(preparation_signature(desc, lowered, nest), target.load(source, nest))


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


def _lowered(desc: KernelDesc, plan: Plan, machine: Machine | str, constants: frozenset[int]) -> Lowered:
    """All stages; expressions that nest deeper than Python's stack are refused."""
    try:
        return lower(desc, plan, machine, constants)
    except RecursionError:
        message = f"{desc.name}: expressions of its {len(desc.operators)} operators nest too deeply; split the kernel"
        raise UnsupportedError("budget", message) from None


def _bytes(nest: Nest, workspace: bool) -> int | None:
    total = 0
    for buffer in nest.buffers:
        size = product(buffer.shape)
        if isinstance(size, Sym):
            return None
        total += size * buffer.dtype.itemsize if (buffer.space is Space.WORKSPACE) == workspace else 0
    return total
