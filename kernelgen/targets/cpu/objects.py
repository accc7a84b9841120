"""Source to object code through the disk cache."""

from __future__ import annotations

from kernelgen import options
from kernelgen.targets.cpu.cache import cache_key, cached
from kernelgen.targets.cpu.host import Host
from kernelgen.targets.cpu.module import LLVM_VERSION, compile_object


def cached_object(source: str, host: Host) -> tuple[bytes, bool]:
    """The object for a module of LLVM assembly, and whether it came from disk."""
    from_disk = True

    def produce() -> bytes:
        nonlocal from_disk
        from_disk = False
        return compile_object(source, host)

    key = cache_key(source, host.cpu, ",".join(sorted(host.features)), LLVM_VERSION)
    return cached(options.cache_dir() / "cpu", key, produce), from_disk
