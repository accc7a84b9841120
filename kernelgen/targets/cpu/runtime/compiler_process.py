"""LLVM in a process of its own: reads modules from its input, writes objects to its output, ends with its input.

A message is its length in eight bytes, then its bytes. A request is two: the host as JSON, then the module's text. The
answer is one: ``+`` and the object, or ``-`` and why LLVM rejected the module. :mod:`isolated` is the other end.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from typing import BinaryIO

from kernelgen.errors import CodegenError
from kernelgen.targets.cpu.runtime.llvm import compile_object
from kernelgen.targets.cpu.text.host import Host

LENGTH_BYTES = 8
ACCEPTED, REJECTED = b"+", b"-"


def message(content: bytes) -> bytes:
    """Content with its length in front."""
    return len(content).to_bytes(LENGTH_BYTES, "little") + content


def request(source: str, host: Host) -> bytes:
    """The messages that ask for the object of a module."""
    header = json.dumps({"cpu": host.cpu, "features": sorted(host.features)})
    return message(header.encode()) + message(source.encode())


def serve() -> None:
    """Answers until the input ends: then whoever asked is gone, and so is this process, also out of an endless compilation."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what LLVM prints is no answer
    waiting: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(os.fdopen(0, "rb"), waiting), daemon=True).start()
    while True:
        answers.write(message(_answer(*waiting.get())))


def _read(requests: BinaryIO, waiting: queue.SimpleQueue[tuple[bytes, bytes]]) -> None:
    while (header := _content(requests)) and (source := _content(requests)):
        waiting.put((header, source))
    os._exit(0)


def _content(requests: BinaryIO) -> bytes:
    length = requests.read(LENGTH_BYTES)
    return requests.read(int.from_bytes(length, "little")) if len(length) == LENGTH_BYTES else b""


def _answer(header: bytes, source: bytes) -> bytes:
    described = json.loads(header)
    try:
        host = Host(described["cpu"], frozenset(described["features"]))
        return ACCEPTED + compile_object(source.decode(), host)
    except CodegenError as error:
        return REJECTED + str(error).encode()
