"""Source to loaded machine code through the disk cache."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen import options
from kernelgen.native.library import Library
from kernelgen.system.object_cache import cache_key, cached
from kernelgen.targets.cpu.runtime.isolated import compiler
from kernelgen.targets.cpu.runtime.llvm import LLVM_VERSION, compile_object, link
from kernelgen.targets.cpu.text.host import Host


def cached_library(
    source: str, host: Host, exports: tuple[str, ...], symbols: Mapping[str, int]
) -> tuple[Library, bool]:
    """The loaded functions ``exports`` of the module of LLVM assembly ``source``, compiled for ``host``, and whether
    their machine code came from disk.

    ``symbols`` are the addresses of what it calls and the process does not export itself.
    """
    key = cache_key(_unnamed(source), host.triple, host.cpu, ",".join(sorted(host.features)), LLVM_VERSION)
    make = compiler().compile_object if options.isolates_compiler() else compile_object
    return cached(
        options.cache_dir(), "cpu", key, lambda: make(source, host), lambda code: link(code, exports, symbols),
        options.shared_cache(),
    )  # fmt: skip


def _unnamed(source: str) -> str:
    """Without the comment that names the kernel: equal ones of other names are one object."""
    first, _, rest = source.partition("\n")
    return rest if first.startswith(";") else source
