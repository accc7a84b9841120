"""Verifies one description: draw inputs, run kernel and reference, compare outputs and updated inputs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelgen.desc import KernelDesc
from kernelgen.desc_bind import specialize
from kernelgen.desc_json import load_desc
from kernelgen.driver import compile
from kernelgen.errors import BackendUnavailable, DescError, UnsupportedError
from kernelgen.meaning import reference
from kernelgen.samples import bind_symbols, draw
from kernelgen.samples_scale import argument_bytes, scale_down
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
"""What such a target takes of a kernel that cannot shrink."""


def verify(
    desc: KernelDesc,
    target: str = "cpu",
    seed: int = 0,
    compiler: Compiler = compile,
    byte_limit: int = BYTE_LIMIT,
    checked: bool = False,
) -> Record:
    """Compiles the description for a target and compares a run with :func:`kernelgen.reference`.

    With ``checked`` the finished nest also goes through :func:`kernelgen.checker.check`.

    Refusals (UnsupportedError) are skipped with their reason code, as is a target that needs what is not installed; a
    wrong answer or any other exception is a failure.
    """
    most = min(4 * byte_limit, INTERPRETED_AT_MOST) if target in INTERPRETED_LIMITS else 4 * byte_limit
    byte_limit = min(byte_limit, INTERPRETED_LIMITS.get(target, byte_limit))
    scaled = scale_down(desc, byte_limit)
    if scaled is None and argument_bytes(desc) > most:
        return Record(desc.name, Status.SKIPPED, "too-large", f"{argument_bytes(desc) >> 20} MB of arguments")
    try:
        record = _verified(scaled or desc, target, seed, compiler)
        if checked and record.status is Status.PASSED:
            record = examined(record, scaled or desc, lambda smaller: compiler(smaller, target))
    except BackendUnavailable as missing:
        record = Record(desc.name, Status.SKIPPED, "unavailable", str(missing))
    except UnsupportedError as refusal:
        record = Record(desc.name, Status.SKIPPED, refusal.code, str(refusal))
    except Exception as error:
        record = failed(desc.name, "exception", f"{type(error).__name__}: {error}")
    return replace(record, scaled=scaled is not None and scaled is not desc)


def verify_file(
    path: Path,
    target: str = "cpu",
    seed: int = 0,
    compiler: Compiler = compile,
    byte_limit: int = BYTE_LIMIT,
    checked: bool = False,
) -> Record:
    """:func:`verify` of a file; the record has the file's name."""
    try:
        desc = load_desc(path)
    except (DescError, OSError, UnicodeDecodeError) as error:
        return failed(path.name, "bad-description", str(error))
    return replace(verify(desc, target, seed, compiler, byte_limit, checked), name=path.name)


def _verified(desc: KernelDesc, target: str, seed: int, compiler: Compiler) -> Record:
    clock = _Clock()
    kernel = clock.timed("compile", lambda: compiler(desc, target))
    inputs = draw(desc, seed)
    given = _copies(desc, inputs)
    outputs = _spoiled(desc)
    clock.timed("run", lambda: kernel(*given, out=outputs))
    expected = _copies(desc, inputs)
    wanted = clock.timed("reference", lambda: reference(desc)(*expected))
    names = [t.name for t in desc.outputs] + [desc.inputs[i].name for i in desc.updated_inputs]
    found = compare(desc, names, _results(desc, outputs, given), _results(desc, wanted, expected))
    proof = Counter(fact.check for fact in kernel.proof.facts) if hasattr(kernel, "proof") else {}
    more: dict[str, Any] = {"times": clock.milliseconds, "max_error": found.error, "proof": dict(proof)}
    if found.fault:
        return failed(desc.name, "wrong-answer", found.fault, **more)
    return Record(desc.name, Status.PASSED, **more)


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
