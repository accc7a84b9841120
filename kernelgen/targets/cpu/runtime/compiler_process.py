"""LLVM in a process of its own: what is asked of it, and its answers. :mod:`isolated` is the other end.

A request is the host as a line of JSON, then the module's text. The answer is ``+`` and the object, or ``-`` and why LLVM
rejected the module.
"""

from __future__ import annotations

import json

from kernelgen.errors import CodegenError
from kernelgen.targets.cpu.runtime.llvm import compile_object
from kernelgen.targets.cpu.text.host import Host

ACCEPTED, REJECTED = b"+", b"-"


def request(source: str, host: Host) -> bytes:
    """What asks for the object of a module."""
    header = json.dumps({"cpu": host.cpu, "features": sorted(host.features), "triple": host.triple})
    return f"{header}\n{source}".encode()


def answer(asked: bytes) -> bytes:
    """The answer to a request."""
    header, _, source = asked.partition(b"\n")
    described = json.loads(header)
    try:
        host = Host(described["cpu"], frozenset(described["features"]), described["triple"])
        return ACCEPTED + compile_object(source.decode(), host)
    except CodegenError as error:
        return REJECTED + str(error).encode()
