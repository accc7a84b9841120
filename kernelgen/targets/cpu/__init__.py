"""The CPU target."""

from kernelgen.nest.nodes import Nest
from kernelgen.targets.base import Entry, Target


def emit(nest: Nest) -> str:
    """The nest as LLVM assembly for this machine's processor."""
    from kernelgen.targets.cpu.emit import emit_for
    from kernelgen.targets.cpu.module import detect_host

    return emit_for(nest, detect_host())


def load(source: str, nest: Nest) -> Entry:
    """Compiles (or takes from the cache) and links."""
    from kernelgen.targets.cpu.entry import load_entry

    return load_entry(source, nest)


TARGET = Target("cpu", emit, load, vector_bytes=32)
