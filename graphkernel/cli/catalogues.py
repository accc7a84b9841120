"""Commands that list what is declared."""

from __future__ import annotations

from graphkernel.cli.base import Flags, Level, Target, app, first_line, options_of
from graphkernel.declarations import builtin_catalogue
from graphkernel.options import flag_table
from graphkernel.passes.base import Step
from graphkernel.pipeline import steps_for
from graphkernel.report.table import print_table


@app.command()
def passes(opt_level: Level = 2, flags: Flags = "", target: Target = "cpu") -> None:
    """The pipeline: every step in order, whether it runs, and why it stands there."""
    steps = steps_for(options_of(opt_level, target, flags))
    rows = [(step.name, step.level, "on" if step.enabled else "off", step.when.text, reason(step)) for step in steps]
    print_table(("pass", "level", "", "only when", "why"), rows)


def reason(step: Step) -> str:
    """Why a step stands where it stands, or why there is nothing to do."""
    return f"nothing to do: {step.pass_.doc}" if step.pass_.absorbed else step.why


@app.command()
def ops() -> None:
    """The operators."""
    print_table(
        ("operator", "kind", "attributes", ""),
        [(op.name, op.kind.name, ", ".join(op.attributes), op.doc) for op in builtin_catalogue().ops],
    )


@app.command()
def patterns() -> None:
    """The fusion patterns and the rewriting rules."""
    catalogue = builtin_catalogue()
    fusion = [(pattern.name, "fusion", first_line(pattern.doc)) for pattern in catalogue.fusion_patterns]
    print_table(
        ("name", "kind", ""),
        [*fusion, *((rule.name, f"rule, {rule.safety.name}", str(rule.equation)) for rule in catalogue.rules)],
    )


@app.command()
def expanders() -> None:
    """The operators that are rewritten by basic ones."""
    print_table(("operator", ""), [(entry.name, first_line(entry.doc)) for entry in builtin_catalogue().expanders])


@app.command()
def flags() -> None:
    """The graph kernel flags."""
    print_table(
        ("flag", "type", "default", "meaning"),
        [(f"--{flag.name}", flag.type, flag.default, flag.meaning) for flag in flag_table()],
    )
