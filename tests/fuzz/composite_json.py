"""Composite JSON that is nearly right: what cannot be read is a ``DescError`` with its place; the rest is lowered."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from kernelgen import errors
from kernelgen.composite.read import load_desc
from kernelgen.composite.write import dump_desc
from tests.fuzz.fuzzer import Fuzzer
from tests.fuzz.mutate import document, shorter, text
from tests.fuzz.outcome import PASSED, Kind, Outcome, internal
from tests.random_kernels.generate import kernel


def draw(seed: int) -> str:
    """The JSON of a random kernel with wrong values, or with wrong signs in its text."""
    random = Random(seed)
    sound: Any = dump_desc(kernel(random, 60, 8).desc)
    if random.random() < 0.3:
        return text(random, json.dumps(sound))
    return json.dumps(document(random, sound))


def check(given: str, level: int) -> Outcome:
    """Only documented errors; what is read can be written, and read again as the same."""
    try:
        desc = load_desc("{" + given.strip()[1:])  # a text that is no object would be taken for the name of a file
    except errors.KernelgenError as error:
        return Outcome(Kind.REFUSED, type(error).__name__, str(error))
    except Exception as error:
        return internal("load_desc", error)
    try:
        again = load_desc(json.dumps(dump_desc(desc)))
    except Exception as error:
        return internal("written again", error)
    return PASSED if repr(again) == repr(desc) else Outcome(Kind.WRONG, "reading what was written gives another kernel")


FUZZER = Fuzzer(draw, check, shorter)
