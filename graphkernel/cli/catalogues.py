"""Commands that list what is declared. Words behind a command leave only the rows that hold them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from graphkernel.cli.base import Flags, Json, Level, Target, app, first_line, options_of, say, show
from graphkernel.declarations import builtin_catalogue
from graphkernel.options import flag_table
from graphkernel.passes.base import Step
from graphkernel.pipeline import steps_for

Words = Annotated[list[str] | None, typer.Argument(help="only what holds these words, in upper or lower case")]
Row = Sequence[object]


@app.command()
def passes(
    words: Words = None, opt_level: Level = 2, flags: Flags = "", target: Target = "cpu", as_json: Json = False
) -> None:
    """The pipeline: every step in order, whether it runs, and why it stands there."""
    steps = steps_for(options_of(opt_level, target, flags))
    rows = [(step.name, step.level, "on" if step.enabled else "off", step.when.text, reason(step)) for step in steps]
    _list(("pass", "level", "now", "only when", "why"), rows, words, as_json)


def reason(step: Step) -> str:
    """Why a step stands where it stands, or why there is nothing to do."""
    return f"nothing to do: {step.pass_.doc}" if step.pass_.absorbed else step.why


@app.command()
def ops(words: Words = None, as_json: Json = False) -> None:
    """The operators."""
    rows = [
        (op.name, op.kind.name, ", ".join(op.attribute_names), first_line(op.doc)) for op in builtin_catalogue().ops
    ]
    _list(("operator", "kind", "attributes", "meaning"), rows, words, as_json)


@app.command()
def patterns(words: Words = None, as_json: Json = False) -> None:
    """The fusion patterns and the rewriting rules."""
    catalogue = builtin_catalogue()
    fusion = [(pattern.name, "fusion", first_line(pattern.doc)) for pattern in catalogue.fusion_patterns]
    rules = [(rule.name, f"rule, {rule.safety.name}", str(rule.equation)) for rule in catalogue.rules]
    _list(("name", "kind", "what it does"), [*fusion, *rules], words, as_json)


@app.command()
def expanders(words: Words = None, as_json: Json = False) -> None:
    """The operators that are rewritten by basic ones."""
    rows = [(entry.name, first_line(entry.doc)) for entry in builtin_catalogue().expanders]
    _list(("operator", "what becomes of it"), rows, words, as_json)


@app.command()
def flags(words: Words = None, as_json: Json = False) -> None:
    """The graph kernel flags."""
    rows = [(f"--{flag.name}", flag.type, flag.default, flag.meaning) for flag in flag_table()]
    _list(("flag", "type", "default", "meaning"), rows, words, as_json)


def _list(columns: Sequence[str], rows: Iterable[Row], words: Iterable[str] | None, as_json: bool) -> None:
    found = [row for row in rows if all(_holds(row, word) for word in words or ())]
    show(columns, found, as_json)
    if not found:
        say(f"nothing holds {' and '.join(words or ())}", err=True)


def _holds(row: Row, word: str) -> bool:
    """Whether a cell has the word in it, in capitals or not."""
    return any(word.casefold() in str(cell).casefold() for cell in row)
