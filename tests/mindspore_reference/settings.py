"""The options of a record, from the same sources that MindSpore read: the variable, else JitConfig, else the context."""

from __future__ import annotations

import contextlib
import logging
import re
import tempfile
from collections.abc import Generator
from pathlib import Path

from graphkernel.errors import OptionError
from graphkernel.options import Environment, Options
from tests.mindspore_reference.rebuild import Record


class Heard(logging.Handler):
    """What was told to the user while it was listened to."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a message."""
        self.messages.append(record.getMessage())


@contextlib.contextmanager
def listening() -> Generator[Heard]:
    """Collects the warnings of graphkernel instead of printing them."""
    logger, heard = logging.getLogger("graphkernel"), Heard()
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(heard)
    try:
        yield heard
    finally:
        logger.removeHandler(heard)
        logger.propagate = propagates


def options_of(record: Record, heard: Heard) -> Options:
    """The options in force. Flags that are no text are refused, which counts as a message; then the feature is off."""
    base = Options(opt_level=2 if record["enable_graph_kernel_context"] else 0)
    given = asked_for(record)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in (record.get("files") or {}).items():
            Path(name).write_text(text)
        try:
            return Options.resolve(given, environment=Environment(flags=record["flags"]), base=base)
        except OptionError as error:
            heard.messages.append(str(error))
            return base.model_copy(update={"opt_level": 0})


def asked_for(record: Record) -> str | None:
    """The flags that the program itself set."""
    jit = re.search(r'JitConfig\(.*graph_kernel_flags="(.*?)"', record["source"])
    context = re.search(r'graph_kernel_flags="(.*?)"', record.get("context_calls") or "")
    found = jit or context
    return found[1] if found else None
