"""Flag texts and flag files: from the caller they are refused with ``OptionError``, from the environment they warn."""

from __future__ import annotations

import contextlib
import json
import logging
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from graphkernel.errors import GraphKernelError
from graphkernel.options import Environment, Options
from graphkernel.pipeline import steps_for
from tests.fuzz.fuzzer import Fuzzer
from tests.fuzz.mutate import ODD_TEXTS, ODD_VALUES, document, shorter, text
from tests.fuzz.outcome import PASSED, Kind, Outcome, internal

FILE = "FLAGS_FILE"  # stands in the text for where the file is
VARIABLES = (
    "OMP_NUM_THREADS",
    "GLOG_v",
    "GRAPHKERNEL_LOG",
    "MS_DEV_DUMP_GRAPH_KERNEL_IR",
    "MS_DEV_ENABLE_KERNEL_PACKET",
)


def draw(seed: int) -> dict[str, Any]:
    """``text`` (the flags), ``file`` (content of a flag file, or None), and ``environment`` variables."""
    random = Random(seed)
    flags = " ".join(_flag(random) for _ in range(random.randrange(1, 6)))
    content = _file(random) if random.random() < 0.3 else None
    flags = f"{flags} --path={FILE}" if content is not None else flags
    flags = text(random, flags) if random.random() < 0.5 else flags
    named = {
        name: random.choice((*ODD_TEXTS, "1", "on", "off", "DEBUG")) for name in VARIABLES if random.random() < 0.2
    }
    return {"text": flags, "file": content, "environment": named}


def _flag(random: Random) -> str:
    name = random.choice(tuple(Options.model_fields))
    return f"--{name}" if random.random() < 0.2 else f"--{name}={_value(random)}"


def _value(random: Random) -> str:
    return random.choice((*ODD_TEXTS, *map(str, ODD_VALUES), "1", "2", "on", "off", "Add,Mul", "AKG", "all", "3:1,2"))


def _file(random: Random) -> str:
    sound = {random.choice(tuple(Options.model_fields)): _value(random) for _ in range(4)}
    return text(random, json.dumps(sound)) if random.random() < 0.5 else json.dumps(document(random, sound))


def check(given: Mapping[str, Any], level: int) -> Outcome:
    """The flags from the caller, then from the environment."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        place = Path(folder, "flags.json")
        if given["file"] is not None:
            place.write_text(given["file"], encoding="utf-8", errors="surrogatepass")
        flags = given["text"].replace(FILE, str(place))
        return _from_environment(flags, given["environment"]) or _from_caller(flags)


def _from_environment(flags: str, variables: Mapping[str, str]) -> Outcome | None:
    """Nothing there may end a compilation."""
    try:
        environment = Environment.read({**variables, "MS_DEV_GRAPH_KERNEL_FLAGS": flags})
        steps_for(Options.resolve(environment=environment))
    except Exception as error:
        return internal("environment", error)
    return None


def _from_caller(flags: str) -> Outcome:
    try:
        options = Options.parse(flags)
        steps_for(options)
        options.changes()
    except GraphKernelError as error:
        return Outcome(Kind.REFUSED, type(error).__name__, str(error))
    except Exception as error:
        return internal("flags", error)
    return PASSED


def smaller(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Without the file, without variables, with shorter texts."""
    if given["file"] is not None:
        yield {**given, "file": None}
        yield from ({**given, "file": less} for less in shorter(given["file"]))
    for name in given["environment"]:
        yield {**given, "environment": {key: value for key, value in given["environment"].items() if key != name}}
    yield from ({**given, "text": less} for less in shorter(given["text"]))


FUZZER = Fuzzer(draw, check, smaller)
