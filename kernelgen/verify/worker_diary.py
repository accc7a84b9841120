"""What a worker process is doing, in a file: when it dies of a fault, another process reads what it died of.

The first bytes are the fault's address, which :mod:`kernelgen.targets.cpu.runtime.faults` writes; behind them is one line
of JSON: where arrays lie, and in which placement.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernelgen.targets.cpu.runtime.faults import ADDRESS_BYTES
from kernelgen.verify.guard_pages import Fenced, Placement, Touch

_UNKNOWN = b"\xff" * ADDRESS_BYTES


class Diary:
    """A file that two processes know."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    @staticmethod
    def new() -> Diary:
        """A diary in the folder for temporary files."""
        handle, path = tempfile.mkstemp(prefix="kernelgen-diary-")
        os.close(handle)
        found = Diary(Path(path))
        found.begin()
        return found

    def note(self, placement: Placement, fenced: Sequence[Fenced]) -> None:
        """What runs from now on."""
        self._write(f"arrays at the {placement}", [(each.name, *each.span) for each in fenced])

    def begin(self) -> None:
        """From now on nothing lies between fences."""
        self._write("ordinary arrays", [])

    def _write(self, what: str, spans: Sequence[tuple[str, int, int]]) -> None:
        os.pwrite(self.descriptor, _UNKNOWN + json.dumps([what, spans]).encode() + b"\n", 0)

    def read(self) -> str:
        """What the other process died of, in words."""
        text = os.pread(self.descriptor, 1 << 20, 0)
        line = text[ADDRESS_BYTES:].partition(b"\n")[0]
        what, spans = json.loads(line)
        return f"{Touch.of(int.from_bytes(text[:ADDRESS_BYTES], sys.byteorder), spans)}; {what}"

    def close(self) -> None:
        """Leaves the file to the other process."""
        os.close(self.descriptor)

    def remove(self) -> None:
        """Takes the file away."""
        self.close()
        self.path.unlink(missing_ok=True)
