"""Text IR that is nearly right: what cannot be read is a ``ParseError``; what can be read prints and is optimized."""

from __future__ import annotations

import logging
from random import Random

from graph_samples import Sample as GraphSample
from graph_samples import case

import graphkernel as gk
from graphkernel.errors import GraphKernelError, PassError
from tests.fuzz.fuzzer import Fuzzer
from tests.fuzz.mutate import shorter, text
from tests.fuzz.outcome import PASSED, Kind, Outcome, internal

SOURCES = 400  # graphs whose texts are changed


def draw(seed: int) -> str:
    """The text of a random graph, before or after optimization, with changes."""
    logging.disable(logging.WARNING)
    random = Random(seed)
    mine, other = (_text(random.randrange(SOURCES), random.choice((0, 2))) for _ in range(2))
    return text(random, mine, (other,))


def _text(seed: int, level: int) -> str:
    return str(gk.optimize(case(GraphSample.of(seed)).graph, opt_level=level))


def check(given: str, level: int) -> Outcome:
    """Only documented errors; reading what was printed gives the same text."""
    logging.disable(logging.WARNING)
    try:
        graph = gk.parse(given)
    except GraphKernelError as error:
        return Outcome(Kind.REFUSED, type(error).__name__, str(error))
    except Exception as error:
        return internal("parse", error)
    try:
        printed = str(graph)
        if str(gk.parse(printed)) != printed:
            return Outcome(Kind.WRONG, "reading what was printed gives another text", printed)
        gk.optimize(graph, opt_level=level)
    except PassError as error:
        return internal("optimize", error.__cause__ or error)
    except GraphKernelError as error:
        return Outcome(Kind.REFUSED, f"{type(error).__name__} of optimize", str(error))
    except Exception as error:
        return internal("optimize", error)
    return PASSED


FUZZER = Fuzzer(draw, check, shorter, levels=True)
