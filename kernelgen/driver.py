"""compile(desc, target): the story of a kernel, in its two halves."""

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
from kernelgen.plan import Plan
from kernelgen.poly.proof.schedule_proof import Fact, Proof
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
    found = find_target(target)
    return finished(desc, found, planned(desc, found, plan, constants), constants)


def planned(desc: KernelDesc, target: Target, plan: Plan | None = None, constants: Collection[int] = ()) -> Lowered:
    """All of :func:`compile` before the text: the proved nest of ``desc`` for a ``target`` with these ``constants``, and every
    choice of its ``plan``. Raises as it does."""
    if not isinstance(desc, KernelDesc):  # pyright: ignore[reportUnnecessaryIsInstance]  # a path is easily given
        raise ArgumentError(f"compile takes a KernelDesc, got {type(desc).__name__}; kernelgen.load_desc reads one")
    check(desc)
    within_limits(desc)
    plan = plan or Plan(cpu=target.sizes())
    if plan.subject and plan.subject != (own := fingerprint(desc)):
        raise ArgumentError(
            f"the plan was made for {plan.subject}, this is {own}; an empty subject fits any description"
        )
    lowered = _lowered(desc, plan, target.machine, _fixed(desc, constants))
    printer = target.printer
    if printer is None:
        return replace(lowered, plan=replace(lowered.plan, code=None))
    code = lowered.trail.run("choices", lambda: printer.choose(lowered.nest) if plan.code is None else plan.code)
    return replace(lowered, plan=replace(lowered.plan, code=code))


def finished(desc: KernelDesc, target: Target, lowered: Lowered, constants: Collection[int] = ()) -> Kernel:
    """The rest of :func:`compile`: what :func:`planned` made of ``desc``, ``target`` and ``constants``, ``lowered``, as text,
    and loaded."""
    nest, trail, printer, code = lowered.nest, lowered.trail, target.printer, lowered.plan.code
    source = trail.run(
        "source", lambda: target.emit(nest) if printer is None or code is None else printer.emit(nest, code)
    )
    lowered = _with_claims(target, source, lowered)
    entry = trail.run("load", lambda: target.load(source, nest))
    preparation = None
    if nest.preparation is not None:
        preparation = trail.run("preparation", partial(_preparation, target, desc, lowered, nest.preparation))
    resources = Resources(trail.milliseconds, _bytes(nest, workspace=False), _bytes(nest, workspace=True), entry)
    fixed = tuple(sorted(_fixed(desc, constants)))
    return Kernel(signature_of(desc, lowered), entry, desc, target.name, source, lowered, resources, preparation, fixed)


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
