"""Compiled CUDA text on disk: one entry holds the PTX, the cubin and the resource report of all kernels of a text.

The name of an entry is a hash of the text, the architecture, the options and the compiler's version; files appear by
atomic rename, and one that does not fit its hash is compiled again (:mod:`kernelgen.system.object_cache`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from kernelgen import options as environment
from kernelgen.system.object_cache import cache_key, cached
from kernelgen.targets.gpu.launch.nvrtc import OPTIONS, Compiled, Resources, compile_cuda, version

FOLDER = "gpu"


def cached_cubin(source: str, name: str, arch: str = "sm_90", options: Sequence[str] = ()) -> tuple[Compiled, bool]:
    """What NVRTC makes of the text ``source`` for ``arch``, with these ``options``, and whether it came from disk;
    ``name`` is the file's in messages.

    Raises what ``compile_cuda`` raises.
    """
    key = cache_key(source, name, arch, version(), *OPTIONS, *options)
    return cached(
        environment.cache_dir(), FOLDER, key, lambda: packed(compile_cuda(source, name, arch, options)), unpacked,
        environment.shared_cache(),
    )  # fmt: skip


def packed(compiled: Compiled) -> bytes:
    """The compilation as bytes: a line of JSON, the PTX, the cubin."""
    ptx = compiled.ptx.encode()
    head = {
        "name": compiled.name,
        "arch": compiled.arch,
        "ptx_bytes": len(ptx),
        "resources": {kernel: asdict(used) for kernel, used in compiled.resources.items()},
        "log": compiled.log,
    }
    return json.dumps(head).encode() + b"\n" + ptx + compiled.cubin


def unpacked(content: bytes) -> Compiled:
    """The compilation that :func:`packed` wrote."""
    line, _, rest = content.partition(b"\n")
    head = json.loads(line)
    size = head["ptx_bytes"]
    resources = {kernel: Resources(**used) for kernel, used in head["resources"].items()}
    return Compiled(head["name"], head["arch"], rest[:size].decode(), rest[size:], resources, head["log"])
