"""Answers in a file, a line each, as they come: a run that was stopped goes on from there.

A line is ``{"key": ..., "answer": ...}``; the key is a digest of the function and its request. Lines are only ever added.
The last one may be torn, which is as if it were not there; of two with one key the first counts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kernelgen.errors import ArgumentError
from kernelgen.system.bounded_io import json_value


def digest(function: str, request: bytes) -> str:
    """The key of a request."""
    return hashlib.sha256(function.encode() + b"\n" + request).hexdigest()


def entries(content: bytes, name: str) -> Iterator[tuple[str, Any]]:
    """Key and answer of each whole line. Raises ArgumentError with the number of a line that is something else."""
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            entry = json_value(line.decode(), ArgumentError)
            yield str(entry["key"]), entry["answer"]
        except (ArgumentError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise ArgumentError(f"{name}, line {number}: not an answer that was kept: {error}") from None


class Journal:
    """The answers that are known. Without a ``path`` they last as long as the object.

    Used as a context: one run at a time writes a file. Raises ArgumentError where another one does, and for a file of
    something else.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        self._file = -1

    def __enter__(self) -> Self:
        if self.path is not None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                self._lock()
                self._read()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        at: TracebackType | None = None,
    ) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def add(self, key: str, answer: Any) -> None:  # whatever JSON holds
        """Keeps an answer, the first one of its key."""
        if key not in self.known:
            self.known[key] = answer
            if self._file >= 0:
                os.write(self._file, json.dumps({"key": key, "answer": answer}).encode() + b"\n")

    def _lock(self) -> None:
        import fcntl  # only where there is a file to lock

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ArgumentError(f"{self.path}: another run writes this file") from error

    def _read(self) -> None:
        content = b""
        while part := os.pread(self._file, 1 << 20, len(content)):
            content += part
        for key, answer in entries(content, str(self.path)):
            self.known.setdefault(key, answer)
        os.ftruncate(self._file, content.rfind(b"\n") + 1)  # a torn line would spoil the next one
