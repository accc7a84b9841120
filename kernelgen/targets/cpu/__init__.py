"""The CPU target: a nest as LLVM assembly with explicit vectors, compiled and loaded through llvmlite.

Reading order: host (what is known of the processor), sizes (of blocks for it), builder (text of functions), values
(instructions as arithmetic); formats, casts, integers, arithmetic (scalar functions), then exponentials,
logarithms, trigonometry, mathlib (transcendental ones); frame (what is in scope), indices, borders, access (loads and
stores), expressions, locals, statements; counting, chosen, vector_plan, invariants, streaming, vector (vector loops);
transpose, tile_plan, tiles (interleaved loops); work, thread_plan, outline, parallel, loops; choices (what is chosen for
all loops), emit (the whole nest); text_form, integer_terms, claims (what the text says of alignment is proved); module
(llvmlite), compiler_process, isolated (llvmlite in a process of its own), objects, team, wrapper_ir, entry (loaded kernels:
kernelgen.native); allocator (memory for large outputs), faults (what a process says when code touches what it must not).
"""

from collections.abc import Mapping

from kernelgen.nest.nodes import Nest
from kernelgen.plan import CodePlan, CpuPlan
from kernelgen.targets.base import Entry, Printer, Target


def emit(nest: Nest) -> str:
    """The nest as LLVM assembly for this machine's processor."""
    from kernelgen.targets.cpu.emit import emit_for
    from kernelgen.targets.cpu.module import detect_host

    return emit_for(nest, detect_host())


def choose(nest: Nest) -> CodePlan:
    """The choices for this machine's processor."""
    from kernelgen.targets.cpu.choices import choose
    from kernelgen.targets.cpu.module import detect_host

    return choose(nest, detect_host())


def emit_as(nest: Nest, code: CodePlan) -> str:
    """The nest by given choices. Raises ArgumentError when they do not fit it."""
    from kernelgen.targets.cpu.emit import emit_for
    from kernelgen.targets.cpu.module import detect_host

    return emit_for(nest, detect_host(), code)


def sizes() -> CpuPlan:
    """The sizes for this machine's processor."""
    from kernelgen.targets.cpu.module import detect_host
    from kernelgen.targets.cpu.sizes import sizes_for

    return sizes_for(detect_host())


def load(source: str, nest: Nest) -> Entry:
    """Compiles (or takes from the cache) and links."""
    from kernelgen.targets.cpu.entry import load_entry

    return load_entry(source, nest)


def claims(source: str) -> Mapping[str, int]:
    """Shows that addresses are aligned as the source claims; raises ProofError."""
    from kernelgen.targets.cpu.claims import check_claims

    return check_claims(source)


TARGET = Target("cpu", emit, load, vector_bytes=32, sizes=sizes, printer=Printer(choose, emit_as), claims=claims)
