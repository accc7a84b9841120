"""Texts, bytes and JSON with something wrong in them."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

ODD_TEXTS = (
    "", " ", "\n", "\t", "\0", "\x1b[2J", "\u202e", "\ud800", "é", "²", "😀", '"', "'", "\\", "{", "}", "[", "]", "(", ")",
    "<", ">", "#", "//", "%", "%%", "@", "=", ",", ":", ";", "-", "->", "..", "*", "None", "true", "nan", "inf", "-inf",
    "1e999", "-0", "0", "-1", "1_000", "0x7f", "2147483648", "9223372036854775808", "1" * 400, "a" * 5000, "(" * 300,
    "[" * 300, "f32[0]", "f32[-1]", "f32[999999999999]", "i8", "f99", "import os", "__class__", "../../etc/passwd",
)  # fmt: skip
"""Pieces that readers stumble over: blanks, controls, digits that are none, brackets, extremes, nesting."""

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**40, -(10**40), 0.5, 1e308, float("nan"), float("inf"), "", "x", "\ud800",
    "\n", "float32", "float99", "a" * 5000, [], [[]], [None], [1, "a"], {}, {"a": {}}, [0] * 40, [2**40], [-7, 4], [[1], 2],
)  # fmt: skip

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
Change = Callable[[Random, list[str]], None]


def text(random: Random, given: str, others: Sequence[str] = ()) -> str:
    """One to four changes of tokens, and sometimes only a part of the text."""
    tokens = TOKEN.findall(given) or [""]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        random.choice(CHANGES)(random, tokens)
    if others and random.random() < 0.1:
        there = TOKEN.findall(random.choice(others)) or [""]
        begin = random.randrange(len(there))
        tokens[random.randrange(len(tokens)) :] = there[begin : begin + 200]
    made = "".join(tokens)
    return made[: random.randrange(len(made) + 1)] if random.random() < 0.15 else made


def _replace(random: Random, tokens: list[str]) -> None:
    tokens[random.randrange(len(tokens))] = random.choice(ODD_TEXTS)


def _insert(random: Random, tokens: list[str]) -> None:
    tokens.insert(random.randrange(len(tokens) + 1), random.choice(ODD_TEXTS))


def _drop(random: Random, tokens: list[str]) -> None:
    begin = random.randrange(len(tokens))
    del tokens[begin : begin + random.choice((1, 1, 1, 3, 30))]
    tokens.append("")


def _copy(random: Random, tokens: list[str]) -> None:
    begin = random.randrange(len(tokens))
    tokens[begin:begin] = tokens[begin : begin + random.choice((1, 3, 30))]


def _swap(random: Random, tokens: list[str]) -> None:
    a, b = random.randrange(len(tokens)), random.randrange(len(tokens))
    tokens[a], tokens[b] = tokens[b], tokens[a]


def _sign(random: Random, tokens: list[str]) -> None:
    place = random.randrange(len(tokens))
    token = tokens[place] or "0"
    at = random.randrange(len(token))
    tokens[place] = (
        token[:at] + chr(random.choice((0, 9, 10, 34, 45, 48, 57, 92, 123, 200, 0x3BB, 0xFFFF))) + token[at:]
    )


def _number(random: Random, tokens: list[str]) -> None:
    """Another number: what is drawn most, because such a text can often still be read."""
    places = [place for place, token in enumerate(tokens) if token.isdecimal() and len(token) < 20]
    if places:
        place = random.choice(places)
        tokens[place] = str(random.choice((int(tokens[place]) + 1, int(tokens[place]) - 1, 0, 1, 2, 7, 2**31, 2**63)))


def _word(random: Random, tokens: list[str]) -> None:
    """One word of the text for another."""
    places = [place for place, token in enumerate(tokens) if token.isidentifier()]
    if places:
        tokens[random.choice(places)] = tokens[random.choice(places)]


CHANGES: tuple[Change, ...] = (
    _number, _number, _number, _word, _word, _replace, _insert, _drop, _copy, _swap, _sign
)  # fmt: skip


def data(random: Random, given: bytes) -> bytes:
    """Flipped, changed, dropped, doubled or cut bytes."""
    made = bytearray(given)
    for _ in range(random.choice((1, 1, 2, 8))):
        place = random.randrange(len(made)) if made else 0
        match random.randrange(5):
            case 0 | 1 if made:
                made[place] ^= 1 << random.randrange(8)
            case 2 if made:
                made[place] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 3:
                del made[place : place + random.choice((1, 4, 40))]
            case _:
                made[place:place] = made[place : place + random.choice((1, 4, 40))]
    return bytes(made[: random.randrange(len(made) + 1)] if random.random() < 0.15 else made)


def document(random: Random, given: Any) -> Any:  # whatever JSON holds
    """JSON in which one to three values are others, missing, doubled, or elsewhere."""
    made = copy.deepcopy(given)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(made))
        if not places:
            return made
        holder, key = random.choice(places)
        match random.randrange(8):
            case 0:
                del holder[key]
            case 1:
                there, name = random.choice(places)
                holder[key] = copy.deepcopy(there[name]) if name in _keys(there) else None
            case 2 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 3:
                holder[key] = [holder[key]]
            case 4:
                holder[key] = nested(random.choice((20, 63, 65, 900)))
                return made  # Python's copies are recursive: nothing is drawn from this one
            case _:
                holder[key] = copy.deepcopy(random.choice(ODD_VALUES))
    return made


def nested(depth: int) -> Any:  # lists in lists
    """A list in a list in a list."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _keys(holder: Any) -> Any:  # a list or dict
    return range(len(holder)) if isinstance(holder, list) else holder


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, key) of every value inside."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict | list):
            for key in list(_keys(holder)):
                yield holder, key
                waiting.append(holder[key])


def shorter(given: Any) -> Iterator[Any]:  # a text or bytes
    """The same with a part left out: halves first, then smaller and smaller pieces."""
    piece = len(given) // 2
    while piece:
        for begin in range(0, len(given), piece):
            yield given[:begin] + given[begin + piece :]
        piece //= 2
