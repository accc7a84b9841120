"""Verifies one description: draw inputs, run the kernel, look whether results lie where rounding lets them be."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.read import load_desc
from kernelgen.composite.specialize import specialize
from kernelgen.composite.user_operators import operators_in
from kernelgen.driver import compile
from kernelgen.enclosure import Difference, Interval, agree, enclose
from kernelgen.errors import BackendUnavailable, DescError, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.plan import Plan
from kernelgen.samples import trials
from kernelgen.samples.inputs import bind_symbols
from kernelgen.samples.smaller_shapes import argument_bytes, shrink
from kernelgen.system.bounded_io import json_value, read_text
from kernelgen.targets.entries import Sample
from kernelgen.tensor.operator import Operator
from kernelgen.verify.check_independently import examined
from kernelgen.verify.guard import guarded
from kernelgen.verify.known_weights import roundings_of, weights_of, with_known_weights
from kernelgen.verify.own_sizes import Runs, features_of, with_own_features
from kernelgen.verify.record import Record, Status, failed
from kernelgen.verify.worker_diary import Diary

Array = np.ndarray[Any, Any]
Compiler = Callable[..., Any]
"""Of a description, the name of a target and, where one is asked for, a plan; ``constants`` are positions of inputs."""

BYTE_LIMIT = 256 << 20
"""Arguments of a larger kernel are scaled down; those that cannot shrink are compared up to four times this."""

INTERPRETED_LIMITS = {"gpu": 96 << 10, "ascend": 8 << 10}
"""The same for targets whose kernels may be interpreted, thread by thread or copy by copy: tenths of a second for most."""

INTERPRETED_AT_MOST = 4 << 20
"""What such a target runs whole of a kernel that cannot shrink; of a larger one it runs a sample of blocks."""

DRAWN_BYTES = 32 << 20
"""Arguments of all draws together, where a kernel runs on several: one that is larger runs on the first draw only."""


def verify(
    desc: KernelDesc,
    target: str = "cpu",
    seed: int = 0,
    compiler: Compiler = compile,
    byte_limit: int = BYTE_LIMIT,
    checked: bool = False,
    device: bool = False,
    diary: Diary | None = None,
    against: KernelDesc | None = None,
) -> Record:
    """Compiles the description for a target and compares runs with :func:`kernelgen.enclosure.enclose`, on the draws of
    :func:`kernelgen.samples.trials`.

    ``against`` is another description of the same inputs and outputs whose meaning is asked for in place of its own.
    With ``checked`` the finished nest also goes through :func:`kernelgen.checker.check`. With ``device`` the kernel runs
    on one; else a target for devices is interpreted: a small kernel of the same operators whole, then large ones until
    all that the kernel does at its own size has run: see :mod:`kernelgen.verify.own_sizes`. With a ``diary`` it runs
    between pages without access too, and a fault ends the process: see :mod:`kernelgen.verify.guard`.

    A CPU's kernel whose description has weights is asked all this twice, the second time told that these are constants: see
    :mod:`kernelgen.verify.known_weights`.

    Refusals (UnsupportedError) are skipped with their reason code, as is a target that needs what is not installed; a
    wrong answer or any other exception is a failure.
    """

    def verified(by: Compiler) -> Record:
        return _verified_by(by, desc, target, seed, byte_limit, checked, device, diary, against)

    record, weights = verified(compiler), weights_of(desc) if target == "cpu" else ()
    if not weights or record.status is not Status.PASSED:
        return record
    names = tuple(desc.inputs[place].name for place in weights)
    return with_known_weights(record, verified(partial(compiler, constants=weights)), names)


def _verified_by(
    compiler: Compiler,
    desc: KernelDesc,
    target: str,
    seed: int,
    byte_limit: int,
    checked: bool,
    device: bool,
    diary: Diary | None,
    against: KernelDesc | None,
) -> Record:
    """One kernel that a ``compiler`` makes; the others are arguments of :func:`verify`."""
    if diary:
        diary.begin()
    family = target.partition(":")[0]
    interpreted = None if device else INTERPRETED_LIMITS.get(family)
    small = shrink(desc, min(byte_limit, interpreted or byte_limit))
    is_sampled = interpreted is not None and argument_bytes(small) > INTERPRETED_AT_MOST
    if argument_bytes(small) > 4 * byte_limit:
        return Record(desc.name, Status.SKIPPED, "too-large", f"{argument_bytes(desc) >> 20} MB of arguments")
    try:
        record = _verified(small, _other(small, against), target, seed, compiler, device, is_sampled)
        if against is None and record.status is Status.PASSED and not device and small is not desc:
            record = with_own_features(record, desc, _runs(target, seed, compiler), byte_limit)
        if diary and record.status is Status.PASSED:
            record = guarded(record, compiler(small, target), next(trials(small, seed)), _spoiled(small), diary)
        if checked and record.status is Status.PASSED:
            record = examined(record, small, lambda smaller: compiler(smaller, target))
    except BackendUnavailable as missing:
        record = Record(desc.name, Status.SKIPPED, "unavailable", str(missing))
    except UnsupportedError as refusal:
        record = Record(desc.name, Status.SKIPPED, refusal.code, str(refusal))
    except DescError as error:
        record = failed(desc.name, "bad-description", str(error))
    except Exception as error:
        record = failed(desc.name, "exception", f"{type(error).__name__}: {error}")
    return replace(record, own_bytes=argument_bytes(desc), scaled=small is not desc)


def _runs(target: str, seed: int, compiler: Compiler) -> Runs:
    """How other sizes of a description are verified: a sample of blocks where the target has samples, or whole."""

    def verified(desc: KernelDesc, kernel: Any, *, is_sampled: bool) -> Record:
        return _verified(desc, desc, target, seed, lambda *_: kernel, device=False, is_sampled=is_sampled, draws=1)

    by_sample, whole = (partial(verified, is_sampled=is_sampled) for is_sampled in (True, False))
    return Runs(
        target.partition(":")[0],
        lambda desc: compiler(desc, target),
        lambda desc, times: compiler(desc, target, Plan(stands_for=times)),
        by_sample,
        whole,
    )


def _other(desc: KernelDesc, against: KernelDesc | None) -> KernelDesc:
    """The description whose meaning counts, of the sizes of the one that is compiled.

    Raises DescError when inputs or outputs differ, also where only one of both can be scaled down.
    """
    if against is None:
        return desc
    other = shrink(against, argument_bytes(desc))
    if [_signature(desc), len(desc.updated_inputs)] != [_signature(other), len(other.updated_inputs)]:
        raise DescError(f"{against.name} has other inputs or outputs than {desc.name}")
    return other


def _signature(desc: KernelDesc) -> list[tuple[Any, ...]]:
    return [*((t.shape, t.dtype) for t in desc.inputs), (), *((t.shape, t.dtype) for t in desc.outputs)]


def verify_file(path: Path, target: str = "cpu", seed: int = 0, compiler: Compiler = compile) -> Record:
    """:func:`verify` of the file at ``path``, with its ``target``, ``seed`` and ``compiler``; the record has its name."""
    try:
        text = read_text(path, DescError)
    except DescError as error:
        return failed(path.name, "bad-description", str(error))
    return verify_text(path.name, text, target, seed, compiler)


def verify_text(
    name: str,
    text: str,
    target: str = "cpu",
    seed: int = 0,
    compiler: Compiler = compile,
    byte_limit: int = BYTE_LIMIT,
    checked: bool = False,
    device: bool = False,
    diary: Diary | None = None,
    against: str | None = None,
    operators: Sequence[str] = (),
) -> Record:
    """:func:`verify` of a description as JSON text, ``against`` another one; the record has this ``name``.

    ``target``, ``seed``, ``compiler``, ``byte_limit``, ``checked``, ``device`` and ``diary`` are its.
    ``operators`` are the modules of users whose operators both may hold.
    """
    try:
        known = operators_in(operators)
        desc, other = described_in(text, known), described_in(against, known) if against is not None else None
    except DescError as error:
        return failed(name, "bad-description", str(error))
    return replace(verify(desc, target, seed, compiler, byte_limit, checked, device, diary, other), name=name)


def described_in(text: str, operators: Sequence[Operator] = ()) -> KernelDesc:
    """The description in a JSON text, whatever else that may look like. Raises DescError."""
    found = json_value(text, DescError)
    return load_desc(
        found if isinstance(found, Mapping) else f"[{text}]", operators
    )  # a text that is no JSON object is no path


def _verified(
    desc: KernelDesc,
    meaning: KernelDesc,
    target: str,
    seed: int,
    compiler: Compiler,
    device: bool,
    is_sampled: bool,
    draws: int | None = None,
) -> Record:
    clock = _Clock()
    kernel = _placed(clock.timed("compile", lambda: compiler(desc, target)), device)
    proof = Counter(fact.check for fact in kernel.proof.facts) if isinstance(kernel, Kernel) else {}
    size = argument_bytes(desc)
    seen = dict.fromkeys(sorted(features_of(kernel)), size)
    more: dict[str, Any] = {"argument_bytes": (size,), "features": seen, "proof": dict(proof)}
    error = 0.0
    for inputs in islice(trials(desc, seed), draws or _draws(desc, is_sampled)):
        found, sampled = _compared(kernel, desc, meaning, inputs, is_sampled, clock)
        error = max(error, found.error)
        more |= {"times": clock.milliseconds, "max_error": error} | sampled
        if found.fault:
            return failed(desc.name, "wrong-answer", found.fault, **more)
    return Record(desc.name, Status.PASSED, **more)


def _draws(desc: KernelDesc, is_sampled: bool) -> int:
    """How many draws a kernel runs on: all there are, fewer for large ones."""
    return 1 if is_sampled else max(1, DRAWN_BYTES // max(argument_bytes(desc), 1))


def _compared(
    kernel: Callable[..., Any],
    desc: KernelDesc,
    meaning: KernelDesc,
    inputs: Sequence[Array],
    is_sampled: bool,
    clock: _Clock,
) -> tuple[Difference, dict[str, Any]]:
    """One run; and, of a sample of blocks, what the record says of it."""
    given, outputs = _copies(desc, inputs), _spoiled(desc)
    sample = clock.timed("run", lambda: _run(kernel, given, outputs, is_sampled))
    wanted = clock.timed("reference", lambda: enclose(meaning, inputs, roundings_of(kernel)))
    names = [t.name for t in desc.outputs] + [desc.inputs[i].name for i in desc.updated_inputs]
    results = [*outputs, *(given[i] for i in desc.updated_inputs)]
    if sample is None or all(mask is None for mask in sample.written):
        return agree(names, results, wanted), {}
    counts = _counts(sample, results)
    results = [_where_written(*each) for each in zip(sample.written, results, wanted, strict=True)]
    return agree(names, results, wanted), {"sampled": counts}


def _placed(kernel: Callable[..., Any], device: bool) -> Callable[..., Any]:
    """The kernel on a device or without one, as asked for; tests give verifiers kernels that are mere functions."""
    if not isinstance(kernel, Kernel):
        return kernel
    if device and not kernel.runs_on_device:
        raise BackendUnavailable(f"there is no device for target {kernel.target}")
    return kernel if device else kernel.without_device()


def _run(
    kernel: Callable[..., Any], given: Sequence[Array], outputs: Sequence[Array], is_sampled: bool
) -> Sample | None:
    """Runs the kernel, or a sample of its blocks where it has any."""
    if is_sampled and isinstance(kernel, Kernel):
        sample = kernel.sample(given, outputs)
        if sample is not None:
            return sample
    kernel(*(kernel.call_inputs(given) if isinstance(kernel, Kernel) else given), out=outputs)
    return None


def _counts(sample: Sample, results: Sequence[Array]) -> dict[str, int]:
    """What the record says of a sample. Raises UnsupportedError when it wrote nothing that could be compared."""
    pairs = zip(sample.written, results, strict=True)
    elements = sum(result.size if mask is None else int(np.count_nonzero(mask)) for mask, result in pairs)
    total = sum(result.size for result in results)
    if total and not elements:
        raise UnsupportedError("too-large", f"a sample of {sample.blocks} blocks writes no result")
    return {
        "blocks": sample.blocks,
        "blocks_in_all": sample.blocks_in_all,
        "elements": elements,
        "elements_in_all": total,
    }


def _where_written(mask: Array | None, result: Array, right: Interval) -> Array:
    """The result where it is known, elsewhere what is right."""
    return result if mask is None else np.where(mask.reshape(result.shape), result.astype(right.low.dtype), right.low)


def _copies(desc: KernelDesc, inputs: Sequence[Array]) -> list[Array]:
    """The inputs, with fresh copies of those that are updated in place."""
    return [array.copy() if i in desc.updated_inputs else array for i, array in enumerate(inputs)]


def _spoiled(desc: KernelDesc) -> list[Array]:
    """Output arrays full of NaN (integers: 0x55 in every byte), so that an element that is not written shows."""
    made: list[Array] = []
    for tensor in specialize(desc, bind_symbols(desc)).outputs:
        shape = tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised
        array = np.empty(shape, tensor.dtype.numpy)
        if array.dtype.kind in "iub":
            array.reshape(-1).view(np.uint8)[...] = 0 if array.dtype.kind == "b" else 0x55
        else:
            array[...] = np.nan
        made.append(array)
    return made


class _Clock:
    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    def timed(self, name: str, work: Callable[[], Any]) -> Any:  # whatever work gives
        start = time.perf_counter()
        found = work()
        self.milliseconds[name] = self.milliseconds.get(name, 0.0) + (time.perf_counter() - start) * 1e3
        return found
