"""What a hostile case is: something that is brought to a door, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

FINE = "right result"
"""Unusual, and allowed."""

Go = Callable[[Path], object]
"""Goes through a door with a file, or with what it makes in a folder; gives nothing, and raises."""


@dataclass(frozen=True)
class Case:
    """``run`` is given an empty folder; ``expected`` is the class of the error that it must raise, or FINE."""

    door: str
    name: str
    expected: str
    run: Go

    @property
    def key(self) -> str:
        """Door and name: there is one case of a key."""
        return f"{self.door}: {self.name}"


def files(door: str, expected: str, file: str, go: Go, contents: Mapping[str, bytes | str]) -> list[Case]:
    """A case for each content, in a file of that name whose path ``go`` is given."""

    def run(folder: Path, content: bytes | str) -> object:
        path = folder / file
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return go(path)

    return [
        Case(door, name, expected, lambda folder, content=content: run(folder, content))
        for name, content in contents.items()
    ]


def special_files(door: str, expected: str, suffix: str, go: Go) -> list[Case]:
    """What stands where a file should be: nothing, a folder, a device, a pipe, a link in a circle, a bad name."""

    def linked(folder: Path, target: str) -> Path:
        path = folder / f"input{suffix}"
        path.symlink_to(target)
        return path

    def pipe(folder: Path) -> Path:
        import os

        os.mkfifo(folder / f"input{suffix}")
        return folder / f"input{suffix}"

    def directory(folder: Path) -> Path:
        (folder / f"input{suffix}").mkdir()
        return folder / f"input{suffix}"

    made: Mapping[str, Callable[[Path], Path]] = {
        "no such file": lambda folder: folder / f"nothing{suffix}",
        "a folder": directory,
        "a device without end": lambda folder: linked(folder, "/dev/zero"),
        "a named pipe": pipe,
        "a link to itself": lambda folder: linked(folder, f"input{suffix}"),
        "a name with a null character": lambda folder: folder / f"in\0put{suffix}",
        "a name of 300 characters": lambda folder: folder / f"{'n' * 300}{suffix}",
    }
    return [Case(door, name, expected, lambda folder, make=make: go(make(folder))) for name, make in made.items()]
