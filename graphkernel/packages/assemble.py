"""The parts of a package put together: kernels with their machine code, sessions over weights, and the program of both."""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel.errors import PackageError
from graphkernel.packages.container import PackageReader
from graphkernel.packages.lent import Weights
from graphkernel.packages.manifest import CODE, MANIFEST, PROGRAM, Manifest
from graphkernel.packages.programs import Parts, read_program
from graphkernel.runtime.onnxruntime.sessions import Session
from graphkernel.runtime.steps.program import Program
from kernelgen.native.call import NativeKernel
from kernelgen.native.records import read_code, read_kernel
from kernelgen.native.team import team_of
from kernelgen.native.wrapper import caller_of
from kernelgen.system.meanwhile import Meanwhile


def assembled(
    package: PackageReader, manifest: Manifest, weights: Weights, sessions: Meanwhile[Sequence[Session]]
) -> Program:
    """The program of a package. Raises PackageError for parts that do not belong together, and what ``sessions`` raise."""
    kernels = _kernels(package, manifest)
    content = package.content(PROGRAM, manifest.digests).decode()
    parts = Parts(kernels, sessions.result(), weights, dict(manifest.operators))
    return read_program(content, parts)


def _kernels(package: PackageReader, manifest: Manifest) -> Sequence[NativeKernel]:
    if not manifest.kernels:
        return ()
    content, flags = package.sound(CODE, manifest.digests), manifest.machine.flags
    if manifest.caller is None:
        raise PackageError("a package without code for its kernels")
    try:
        caller = caller_of(read_code(manifest.caller, content))
        team = None if manifest.team is None else team_of(read_code(manifest.team, content))
        return [read_kernel(given, content, caller, team, flags) for given in manifest.kernels]
    except (KeyError, TypeError, ValueError) as error:
        raise PackageError(f"{MANIFEST}: {error}") from error
