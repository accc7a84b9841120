"""``python -m docs.generate``: writes what is generated, the tables of what the code declares and the README's figures.

A test compares them with the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphkernel.cluster.model import ORDER
from graphkernel.cluster.ops_lists import CLUSTER_OPS
from graphkernel.expanders.lists import expand_ops
from graphkernel.ir.graph import CONSTANT, FUSED, PARAMETER
from graphkernel.ops import snake_case
from graphkernel.options import flag_table
from graphkernel.pipeline import PIPELINE, STAGES, builtin_catalogue

LEAVES = (PARAMETER, CONSTANT, FUSED)  # written by the builder, not by functions
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cpu.json"
FIGURES = re.compile(r"(<!-- figures: .*? -->\n).*?(<!-- end of figures -->)", re.DOTALL)
NOTE = "*Written by `make docs` from the code; a test keeps it current.*"


def main() -> None:
    """Writes every generated page, and the generated part of the README."""
    for name, text in pages().items():
        (ROOT / name).write_text(text)


def pages() -> Mapping[str, str]:
    """File name, from the root -> text."""
    return {
        "docs/flags.md": flags(),
        "docs/passes.md": passes(),
        "docs/operators.md": operators(),
        "docs/rules.md": rules(),
        "README.md": readme(),
    }


def readme() -> str:
    """The README with the figures of the committed benchmark run, or none where there is no run."""
    measured = figures(json.loads(RESULTS.read_text())) if RESULTS.exists() else ""
    return FIGURES.sub(lambda found: found[1] + measured + found[2], (ROOT / "README.md").read_text())


def figures(record: Mapping[str, Any]) -> str:
    """A benchmark run as a table: ours, torch.compile over ours, the machine's limit over ours, compile times."""
    machine, versions = record["machine"], record["machine"]["versions"]
    rows = [
        (
            f"`{name}` {' x '.join(map(str, next(iter(case['shapes'].values()))))}",
            f"{case['contestants']['ours']['milliseconds']['median']:.3g}",
            spread(case["times_of_ours"]["torch.compile"]),
            f"{case['times_of_ours']['limit']['median']:.0%}",
            f"{cold(case, 'ours'):.0f}",
            f"{cold(case, 'torch'):.0f}",
        )
        for name, case in record["cases"].items()
    ]
    head = (
        "float32", "ours, ms", "torch.compile takes", "of the machine's speed", "cold compile, ms", "torch's, ms",
    )  # fmt: skip
    where = (
        f"One core of an {machine['processor']} ({machine['architecture']}), outputs given, torch {versions['torch']}, "
        f"{record['date']}: medians of {record['rounds']} rounds in which all take turns, least and greatest in brackets. "
        "The machine's speed is a copy (or a read) of as many bytes in the same rounds; a cold compile is the first call in a "
        "fresh process with empty caches."
    )
    return (
        f"\n## Figures\n\n{where}\n\n{table(head, rows)}\n\n`python -m benchmarks cpu --json OUT` measures again.\n\n"
    )


def spread(times: Mapping[str, float]) -> str:
    """``1.58 times (1.09-2.05)``."""
    return f"{times['median']:.2f} times ({times['low']:.2f}-{times['high']:.2f})"


def cold(case: Mapping[str, Any], who: str) -> float:
    """Milliseconds of the first call in a fresh process with an empty cache."""
    return case["cold"][who]["empty"]["compile"]["median"]


def flags() -> str:
    """MS_DEV_GRAPH_KERNEL_FLAGS, key by key."""
    rows = [(f"`{flag.name}`", flag.type, flag.default, flag.meaning) for flag in flag_table()]
    return page(
        "Flags",
        'Given as `flags="--key=value --switch"` to `gk.optimize` and the command line, or in the environment variable '
        "`MS_DEV_GRAPH_KERNEL_FLAGS`, which then replaces them. Lists are separated by commas.",
        table(("flag", "type", "default", "meaning"), rows),
    )


def passes() -> str:
    """The pipeline in order."""
    rows = [
        (f"{STAGES.index(step.stage)}.{step.number}", f"`{step.stage}.{step.pass_.name}`", str(step.level), step.why)
        for step in PIPELINE
    ]
    patterns = {pattern.name: pattern for pattern in builtin_catalogue().fusion_patterns}
    ordered = [*(name for name in ORDER if name in patterns), *sorted(set(patterns) - set(ORDER))]
    fusions = [(f"`{name}`", patterns[name].direction.value, first_line(patterns[name].doc)) for name in ordered]
    return page(
        "Passes and fusion patterns",
        "Passes run in this order, each from its `opt_level` on. `--disable_pass` and `--enable_pass` take the number or "
        "the name.",
        table(("number", "pass", "from level", "why it runs here"), rows),
        "The splitter tries the fusion patterns in this order, again and again until none applies. A pattern says which "
        "neighbours an area wants in its kernel: producers (forward) or users (backward).",
        table(("pattern", "direction", "takes in"), fusions),
    )


def operators() -> str:
    """Every operator."""
    rows = [
        (
            f"`{op.name}`",
            f"`{call(snake_case(op.name), op.attributes)}`",
            op.kind.name.lower(),
            ", ".join(target for target in CLUSTER_OPS if op.name in frozenset().union(*CLUSTER_OPS[target])),
            ", ".join(target for target in CLUSTER_OPS if op.name in expand_ops(target) and has_expander(op.name)),
            first_line(op.doc),
        )
        for op in sorted(builtin_catalogue().ops, key=lambda op: op.name)
        if op not in LEAVES
    ]
    return page(
        "Operators",
        "`fused for`: kernels on these targets may hold it. `expanded for`: it is rewritten into others there. What is "
        "neither runs on the host library.",
        table(("operator", "function in `ops`", "kind", "fused for", "expanded for", "remark"), rows),
    )


def rules() -> str:
    """Every arithmetic rule."""
    rows = [
        (f"`{rule.name}`", f"`{rule.equation}`", rule.safety.name, rule.integers.name, first_line(rule.doc))
        for rule in builtin_catalogue().rules
    ]
    return page(
        "Rules",
        "EXACT rules give the same bits for every value, infinities and NaN included; ROUNDING rules may round differently "
        "and fire with `--exact_precision_mode=false`; DOMAIN rules need a fact and fire with `--numerics=fast`.",
        table(("rule", "equation", "on floats", "on integers", "remark"), rows),
    )


def page(title: str, *parts: str) -> str:
    """A page with its title and the note where it comes from."""
    return "\n\n".join([f"# {title}", NOTE, *parts]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def call(function: str, attributes: Sequence[str]) -> str:
    """How an operator is called, operands left out."""
    return f"{function}({', '.join(['...', *attributes])})"


def first_line(doc: str) -> str:
    """The first sentence line of a docstring, as Markdown."""
    line = doc.strip().partition("\n")[0]
    return re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", lambda found: f"`{found[1] or found[2]}`", line)


def has_expander(name: str) -> bool:
    """True when the catalogue can rewrite the operator."""
    return any(entry.name == name for entry in builtin_catalogue().expanders)


if __name__ == "__main__":
    main()
