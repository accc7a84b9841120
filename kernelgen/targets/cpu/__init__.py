"""The CPU target: a nest as LLVM assembly with explicit vectors, compiled and loaded through llvmlite.

Rooms: loops, math, proof, runtime, statements, text.
Reading order: emit.
"""

from collections.abc import Mapping

from kernelgen import options
from kernelgen.nest.nodes import Nest
from kernelgen.plan import CodePlan, CpuPlan
from kernelgen.targets.base import Entry, Printer, Target


def emit(nest: Nest) -> str:
    """The nest as LLVM assembly for this machine's processor."""
    from kernelgen.targets.cpu.emit import emit_for
    from kernelgen.targets.cpu.runtime.llvm import detect_host

    return emit_for(nest, detect_host())


def choose(nest: Nest) -> CodePlan:
    """The choices for this machine's processor."""
    from kernelgen.targets.cpu.loops.code_plan import choose
    from kernelgen.targets.cpu.runtime.llvm import detect_host

    return choose(nest, detect_host())


def emit_as(nest: Nest, code: CodePlan) -> str:
    """The nest by given choices. Raises ArgumentError when they do not fit it."""
    from kernelgen.targets.cpu.emit import emit_for
    from kernelgen.targets.cpu.runtime.llvm import detect_host

    return emit_for(nest, detect_host(), code)


def sizes() -> CpuPlan:
    """The sizes for this machine's processor and the threads that kernels may use."""
    from kernelgen.targets.cpu.loops.block_sizes import sizes_for
    from kernelgen.targets.cpu.runtime.llvm import detect_host

    return sizes_for(detect_host(), options.thread_count())


def load(source: str, nest: Nest) -> Entry:
    """Compiles (or takes from the cache) and links."""
    from kernelgen.targets.cpu.runtime.entry import load_entry

    return load_entry(source, nest)


def claims(source: str) -> Mapping[str, int]:
    """Shows that addresses are aligned as the source claims; raises ProofError."""
    from kernelgen.targets.cpu.proof.alignment_claims import check_claims

    return check_claims(source)


TARGET = Target("cpu", emit, load, sizes=sizes, printer=Printer(choose, emit_as), claims=claims)
