"""Verifies one description: draw inputs, run kernel and reference, compare outputs and updated inputs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelgen.desc import KernelDesc
from kernelgen.desc_bind import specialize
from kernelgen.desc_json import load_desc
from kernelgen.driver import compile
from kernelgen.errors import BackendUnavailable, DescError, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.meaning import reference
from kernelgen.samples import bind_symbols, draw
from kernelgen.samples_scale import argument_bytes, shrink
from kernelgen.targets.base import Sample
from kernelgen.verify.compare import compare
from kernelgen.verify.examine import examined
from kernelgen.verify.record import Record, Status, failed

Array = np.ndarray[Any, Any]
Compiler = Callable[[KernelDesc, str], Callable[..., Any]]

BYTE_LIMIT = 256 << 20
"""Arguments of a larger kernel are scaled down; those that cannot shrink are compared up to four times this."""

INTERPRETED_LIMITS = {"gpu": 96 << 10}
"""The same for targets whose kernels may be interpreted, thread by thread: some tenths of a second for most."""

INTERPRETED_AT_MOST = 6 << 20
"""What such a target runs whole of a kernel that cannot shrink."""

SAMPLED_LIMIT = 64 << 20
"""A larger kernel of such a target runs a sample of its blocks, on arguments of this size where it can shrink so far."""


@dataclass(frozen=True)
class Size:
    """The description to verify: the given one or a smaller one, run whole or as a sample of its blocks."""

    desc: KernelDesc
    is_sampled: bool = False


def verify(
    desc: KernelDesc,
    target: str = "cpu",
    seed: int = 0,
    compiler: Compiler = compile,
    byte_limit: int = BYTE_LIMIT,
    checked: bool = False,
    device: bool = False,
) -> Record:
    """Compiles the description for a target and compares a run with :func:`kernelgen.reference`.

    With ``checked`` the finished nest also goes through :func:`kernelgen.checker.check`. With ``device`` the kernel runs
    on one; else a target for devices is interpreted, and of a kernel too large for that a sample of blocks.

    Refusals (UnsupportedError) are skipped with their reason code, as is a target that needs what is not installed; a
    wrong answer or any other exception is a failure.
    """
    size = _size(desc, byte_limit, INTERPRETED_LIMITS.get(target) if not device else None)
    if size is None:
        return Record(desc.name, Status.SKIPPED, "too-large", f"{argument_bytes(desc) >> 20} MB of arguments")
    try:
        record = _verified(size, target, seed, compiler, device)
        if checked and record.status is Status.PASSED:
            record = examined(record, size.desc, lambda smaller: compiler(smaller, target))
    except BackendUnavailable as missing:
        record = Record(desc.name, Status.SKIPPED, "unavailable", str(missing))
    except UnsupportedError as refusal:
        record = Record(desc.name, Status.SKIPPED, refusal.code, str(refusal))
    except Exception as error:
        record = failed(desc.name, "exception", f"{type(error).__name__}: {error}")
    return replace(record, scaled=size.desc is not desc)


def _size(desc: KernelDesc, byte_limit: int, interpreted: int | None) -> Size | None:
    """What to verify; None for a kernel that is too large and does not shrink."""
    smaller = shrink(desc, min(byte_limit, interpreted or byte_limit))
    if interpreted is None or argument_bytes(smaller) <= INTERPRETED_AT_MOST:
        return Size(smaller) if argument_bytes(smaller) <= 4 * byte_limit else None
    sampled = shrink(desc, min(byte_limit, SAMPLED_LIMIT))
    return Size(sampled, is_sampled=True) if argument_bytes(sampled) <= 4 * byte_limit else None


def verify_file(
    path: Path,
    target: str = "cpu",
    seed: int = 0,
    compiler: Compiler = compile,
    byte_limit: int = BYTE_LIMIT,
    checked: bool = False,
    device: bool = False,
) -> Record:
    """:func:`verify` of a file; the record has the file's name."""
    try:
        desc = load_desc(path)
    except (DescError, OSError, UnicodeDecodeError) as error:
        return failed(path.name, "bad-description", str(error))
    return replace(verify(desc, target, seed, compiler, byte_limit, checked, device), name=path.name)


def _verified(size: Size, target: str, seed: int, compiler: Compiler, device: bool) -> Record:
    clock, desc = _Clock(), size.desc
    kernel = _placed(clock.timed("compile", lambda: compiler(desc, target)), device)
    inputs = draw(desc, seed)
    given = _copies(desc, inputs)
    outputs = _spoiled(desc)
    sample = clock.timed("run", lambda: _run(kernel, given, outputs, size.is_sampled))
    expected = _copies(desc, inputs)
    wanted = clock.timed("reference", lambda: reference(desc)(*expected))
    names = [t.name for t in desc.outputs] + [desc.inputs[i].name for i in desc.updated_inputs]
    results, right = _results(desc, outputs, given), _results(desc, wanted, expected)
    more: dict[str, Any] = {}
    if sample is not None:
        more["sampled"] = _counts(sample, right)
        results = [_where_written(*each) for each in zip(sample.written, results, right, strict=True)]
    found = compare(desc, names, results, right)
    proof = Counter(fact.check for fact in kernel.proof.facts) if isinstance(kernel, Kernel) else {}
    more |= {"times": clock.milliseconds, "max_error": found.error, "proof": dict(proof)}
    if found.fault:
        return failed(desc.name, "wrong-answer", found.fault, **more)
    return Record(desc.name, Status.PASSED, **more)


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
    kernel(*given, out=outputs)
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


def _where_written(mask: Array | None, result: Array, right: Array) -> Array:
    """The result where it is known, elsewhere what is right."""
    return result if mask is None else np.where(mask.reshape(result.shape), result, right)


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
            array.view(np.uint8)[...] = 0 if array.dtype.kind == "b" else 0x55
        else:
            array[...] = np.nan
        made.append(array)
    return made


def _results(desc: KernelDesc, outputs: Sequence[Array], inputs: Sequence[Array]) -> list[Array]:
    """The outputs, then the updated inputs."""
    return [*outputs, *(inputs[i] for i in desc.updated_inputs)]


class _Clock:
    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    def timed(self, name: str, work: Callable[[], Any]) -> Any:  # whatever work gives
        start = time.perf_counter()
        found = work()
        self.milliseconds[name] = (time.perf_counter() - start) * 1e3
        return found
