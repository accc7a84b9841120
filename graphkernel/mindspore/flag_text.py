"""The grammar of the flag string: ``--key=value`` tokens between blanks.

``--key`` is true; a list is split at commas; of a repeated key the first stays; ``--path=FILE.json`` makes the JSON
object in the file, of flag names to texts, the only source. What is wrong goes to ``complain``, which raises or warns.
Source: MindSpore's reading of ``MS_DEV_GRAPH_KERNEL_FLAGS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import get_args, get_origin

from graphkernel.errors import nearest
from kernelgen.system.bounded_io import json_value, read_text
from kernelgen.system.escape import line

Complain = Callable[[str], None]
LOGGER_NAME = "graphkernel.options"

TRUE = frozenset({"", "true", "True", "on", "1"})
FALSE = frozenset({"false", "False", "off", "0"})


def warn(message: str) -> None:
    """Logs a WARNING: how the environment variable's mistakes are told."""
    import logging  # most processes have nothing to tell

    logging.getLogger(LOGGER_NAME).warning("%s", line(message))


def with_hint(message: str, name: str, known: Iterable[str]) -> str:
    """The message with the nearest known name and where to see all."""
    return f"{message}{nearest(name, known)}; `graphkernel flags` lists all"


def tokens_of(text: str, complain: Complain) -> dict[str, object]:
    """Key to raw value for each well-formed token; a key without value maps to True."""
    tokens = [token for token in text.split(" ") if token]
    sources = [token for token in tokens if token.partition("=")[0] == "--path"]
    if sources:
        _tell_ignored(tokens, sources[0])
        return _read_json(sources[0].partition("=")[2], complain)
    found: dict[str, object] = {}
    for token in tokens:
        match = re.fullmatch(r"--([^=\s]+)(?:=([^=\s]+))?", token)
        if match is None:
            complain(f"flag {token!r} is not understood; write --key=value or --key, with blanks only between flags")
            continue
        key, value = match.groups()
        if key in found:
            warn(f"flag --{key} is repeated; the first one, --{key}={found[key]}, stays")
            continue
        found[key] = True if value is None else value
    return found


def flag_value(raw: object, annotation: object) -> object:
    """The raw text (or Python value) as the field's type. Raises ``ValueError``, which says what would be valid."""
    is_integer = annotation is int or int in get_args(annotation)
    is_switch = annotation is bool or bool in get_args(annotation)
    if isinstance(raw, bool) and not is_switch:
        raise ValueError("a value is needed: write --key=value")
    if not isinstance(raw, str):
        return tuple(raw) if isinstance(raw, list | tuple) else raw
    if is_switch:
        return _bool(raw)
    if is_integer:
        return _integer(raw)
    if get_origin(annotation) is tuple:
        return _names(raw)
    return raw


def unsigned(value: int) -> int:
    """A whole number as MindSpore reads it into 32 bits without sign: -1 is the largest, what is too large as well."""
    return value % 2**32 if value < 0 else min(value, 2**32 - 1)


def _bool(raw: str) -> bool:
    if raw not in TRUE | FALSE:
        raise ValueError("a switch takes true, on, 1 or false, off, 0")
    return raw in TRUE


def _integer(raw: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", raw):
        raise ValueError("a whole number is needed")
    return int(raw)


def _names(raw: str) -> tuple[str, ...]:
    names = tuple(piece for piece in raw.split(",") if piece)
    if not names:
        raise ValueError("a list needs at least one name; separate names with commas")
    return names


def _tell_ignored(tokens: list[str], source: str) -> None:
    """Warns of the flags beside the first ``--path``: the file is the only source."""
    others = list(tokens)
    others.remove(source)
    if others:
        warn(f"flag {source} makes the file the only source: {' '.join(others)} is ignored")


def _read_json(path: str, complain: Complain) -> dict[str, object]:
    if not path:
        complain("flag --path: a file is needed: write --path=FILE.json")
        return {}
    try:
        content = json_value(read_text(path, ValueError), ValueError)
    except ValueError as error:
        complain(f"flag --path={path}: cannot read flags from it: {error}")
        return {}
    if not isinstance(content, dict):
        complain(f"flag --path={path}: the file must hold one JSON object of flag names to values")
        return {}
    texts: dict[str, object] = {str(key): value for key, value in content.items() if isinstance(value, str)}
    for key, value in content.items():
        if not isinstance(value, str):
            complain(f'flag --path={path}: the value of {key!r} must be a text, as in "{key}": "{_spelled(value)}"')
    return texts


def _spelled(value: object) -> str:
    """A JSON value as the text that was meant."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
