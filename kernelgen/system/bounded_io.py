"""Doors: texts come in and files go out within bounds, and what goes wrong is one error of the caller's class.

text = read_text(path, DescError)             a regular file, UTF-8, not larger than LIMITS says
document = json_value(text, DescError)        not nested deeper than LIMITS says, no half of a surrogate pair in it
write_whole(path, text, ArgumentError)        whole or not at all
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import BufferedReader
from typing import Any, BinaryIO

from kernelgen.system.files import open_file, read_file, replacing
from kernelgen.system.limits import LIMITS

Wrong = Callable[[str], Exception]
"""Makes the error that a door raises from what it has to say."""

UNFIT = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What code raises that meets what it was not made for. Doors turn these into errors of their own that name the place."""

_LISTS = (list, tuple)


def read_bytes(path: str | os.PathLike[str], wrong: Wrong, most_bytes: int = LIMITS.text_bytes) -> bytes:
    """The content of a regular file. Raises ``wrong``, with the file and what is wrong with it."""
    try:
        return read_file(os.fspath(path), most_bytes)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character, or one that cannot be encoded
        raise wrong(f"{path}: cannot be read: {_reason(error)}") from error
    except MemoryError:
        raise wrong(f"{path}: there is not enough memory to read it") from None


def opened(path: str | os.PathLike[str], wrong: Wrong, most_bytes: int) -> BufferedReader:
    """A regular file to read from; what is wrong with it is said as by :func:`read_bytes`. Raises what ``wrong`` makes."""
    try:
        return open_file(os.fspath(path), most_bytes)
    except (OSError, ValueError) as error:
        raise wrong(f"{path}: cannot be read: {_reason(error)}") from error


def read_text(path: str | os.PathLike[str], wrong: Wrong, most_bytes: int = LIMITS.text_bytes) -> str:
    """The text of a regular file in UTF-8. Raises what ``wrong`` makes, for what cannot be read."""
    try:
        return read_bytes(path, wrong, most_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise wrong(f"{path}: not a text in UTF-8: {error.reason} at byte {error.start}") from error


def json_value(text: str, wrong: Wrong) -> Any:  # whatever JSON holds
    """The value of a JSON text. Raises what ``wrong`` makes, for what is no JSON, or too large, or nested too deep."""
    if len(text) > LIMITS.json_characters:
        raise wrong(f"JSON of {len(text)} characters; at most {LIMITS.json_characters} are read")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise wrong(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except ValueError as error:
        raise wrong(f"a number has more digits than are read: {error}") from error
    except RecursionError:
        raise wrong(_too_deep()) from None
    check_json(value, wrong)
    return value


def check_json(value: object, wrong: Wrong) -> None:
    """Raises for a JSON value that is nested too deep or has a text that is none: half of a surrogate pair."""
    level: list[Any] = [value]
    for _ in range(LIMITS.nesting):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, str):
                if not each.isascii():
                    _check_text(each, wrong)
            elif isinstance(each, dict):
                inner += (*each, *each.values())
            elif isinstance(each, _LISTS):
                inner += each
        if not inner:
            return
        level = inner
    raise wrong(_too_deep())


def _check_text(text: str, wrong: Wrong) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise wrong(f"the text {text[:40]!a} has half of a surrogate pair, which is no character")


def _too_deep() -> str:
    return f"nested deeper than {LIMITS.nesting} levels"


@contextmanager
def writing(path: str | os.PathLike[str], wrong: Wrong, folders: bool = False) -> Generator[BinaryIO]:
    """A stream whose content becomes the file when the block ends well; else nothing is left of it.

    ``folders`` makes those that are missing. The error says what the disk refused.

    Raises what ``wrong`` makes, for a place that cannot be written.
    """
    from pathlib import Path  # only who writes needs it

    target = Path(path)
    try:
        if not target.name or (target.exists() and not target.is_file()):
            raise OSError(errno.EINVAL, "this is no place for a file")
        if folders:
            target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as stream:
            yield stream
    except (OSError, ValueError) as error:  # ValueError: a path with a null character, or one that cannot be encoded
        raise wrong(f"{path}: cannot be written: {_reason(error)}") from error


def write_whole(path: str | os.PathLike[str], content: str | bytes, wrong: Wrong, folders: bool = False) -> None:
    """Writes a file that appears whole or not at all."""
    with writing(path, wrong, folders) as stream:
        stream.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
