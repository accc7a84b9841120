"""``python -m docs.generate``: writes what is generated: tables of what the code declares, and figures of committed runs.

A test compares them with the files.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

from docs import ascend_tables, farm, measured
from docs.accuracy import accuracy
from docs.ascend_networks import ascend_networks
from docs.compile_times import compile_times
from docs.device import classes
from docs.differentiation import differentiation
from docs.hostile import hostile_inputs
from docs.long_runs import faults, fuzzers, memory
from docs.markdown import page, table
from docs.models import models
from docs.network_races import network_races, networks_in_short
from docs.onnx import onnx
from docs.rooms import rooms
from docs.stencils import stencils
from docs.stubs import stub
from docs.training import training
from docs.v100 import shares
from docs.warm_starts import warm_starts
from graphkernel.cluster.ops_lists import CLUSTER_OPS
from graphkernel.cluster.split_models import MODELS
from graphkernel.declarations import builtin_catalogue
from graphkernel.expanders.lists import expand_ops
from graphkernel.mindspore.rule_ids import RULES_BY_ID
from graphkernel.ops.catalogue import function_called, snake_case
from graphkernel.options import VARIABLES, Options, flag_table
from graphkernel.patterns.language import Rule
from graphkernel.patterns.ranges import Range
from graphkernel.pipeline import steps_for
from kernelgen.tensor.graph import CONSTANT, FUSED, PARAMETER

LEAVES = (PARAMETER, CONSTANT, FUSED)  # written by the builder, not by functions
ROOT = Path(__file__).parents[1]
KERNELS, ON_A_XEON = "cpu.json", "cpu_xeon.json"
"""Runs of the same cases on two makers' processors."""
AGAIN = "\n`python -m benchmarks cpu --json OUT` measures again.\n\n"
FIGURES = re.compile(r"(<!-- figures: .*? -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def main() -> None:
    """Writes every generated page, and the generated part of the README."""
    for name, text in {**pages(), **ascend_tables.pages()}.items():
        (ROOT / name).write_text(text)


def pages() -> Mapping[str, str]:
    """File name, from the root -> text."""
    kernels, xeon = (json.loads((measured.RESULTS / name).read_text()) for name in (KERNELS, ON_A_XEON))
    return {
        "docs/flags.md": flags(),
        "docs/passes.md": passes(),
        "docs/operators.md": operators(),
        "graphkernel/ops/__init__.pyi": stub(),
        "docs/rules.md": rules(),
        "docs/expanders.md": expanders(),
        **differentiation(),
        **measured.networks(),
        **measured.scale(),
        **compile_times(),
        **accuracy(),
        **ascend_networks(),
        **hostile_inputs(),
        **onnx(),
        **models(),
        **network_races(),
        **warm_starts(),
        **training(),
        **stencils(),
        "README.md": with_figures("README.md", in_short(kernels) + on_a_xeon(xeon) + networks_in_short()),
        "docs/figures.md": with_figures("docs/figures.md", figures(kernels) + figures(xeon) + AGAIN),
        "docs/architecture.md": with_figures("docs/architecture.md", rooms()),
        "docs/fuzzing.md": with_figures("docs/fuzzing.md", fuzzers()),
        "docs/processes.md": with_figures("docs/processes.md", memory(), faults()),
        "docs/scale.md": with_figures("docs/scale.md", farm.troubles(), farm.hand_out(), farm.tuned()),
        "docs/gpu.md": with_figures("docs/gpu.md", classes(), shares()),
    }


def with_figures(name: str, *texts: str) -> str:
    """A page whose parts between marks are generated, in order."""
    left = iter(texts)
    return FIGURES.sub(lambda found: found[1] + next(left) + found[2], (ROOT / name).read_text())


def in_short(record: Mapping[str, Any]) -> str:
    """A benchmark run in two sentences: how torch.compile compares, and how long both compile."""
    ratios = [case["times_of_ours"]["torch.compile"]["median"] for case in record["cases"].values()]
    ours, torch = ([cold(case, who) for case in record["cases"].values()] for who in ("ours", "torch"))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return (
        f"{len(ratios)} kernels in float32 on one core ({record['date']}): torch.compile takes {min(ratios):.2f} to "
        f"{max(ratios):.2f} times as long, {mean:.2f} times in the geometric mean.\n"
        f"A cold compile takes {min(ours):.0f} to {max(ours):.0f} ms, torch's {min(torch) / 1000:.0f} to "
        f"{max(torch) / 1000:.0f} s. [Each of them](docs/figures.md).\n"
    )


def on_a_xeon(record: Mapping[str, Any]) -> str:
    """The same cases there in a sentence."""
    cases = record["cases"].values()
    ratios, shares = ([case["times_of_ours"][who]["median"] for case in cases] for who in ("torch.compile", "limit"))
    return (
        f"The same kernels on a Xeon ({record['date']}): torch.compile takes {min(ratios):.2f} to {max(ratios):.2f} times as "
        f"long; none is below {min(shares):.0%} of a copy's or a read's speed.\n"
    )


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
    return f"\n{where}\n\n{table(head, rows)}\n"


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
        "`MS_DEV_GRAPH_KERNEL_FLAGS`, which then replaces them. `--key` alone is `--key=true`, lists are separated by "
        "commas, flags by blanks, and the first of two equal keys stays. `--path=FILE.json` takes all flags from a JSON "
        "object of texts. What is wrong in the variable is a warning, and the default stays; elsewhere it is an error.",
        table(("flag", "type", "default", "meaning"), rows),
        "## Environment",
        table(("variable", "meaning"), [(f"`{name}`", meaning) for name, meaning in VARIABLES.items()]),
    )


def passes() -> str:
    """The pipeline in order."""
    steps = steps_for(Options())
    rows = [
        (
            step.spellings[-1] if step.stage_number is not None else str(step.number),
            f"`{step.stage}.{step.pass_.name}`",
            str(step.level),
            step.when.text,
            step.why,
        )
        for step in steps
        if not step.pass_.absorbed
    ]
    absorbed: dict[str, list[str]] = {}
    for step in steps:
        if step.pass_.absorbed:
            absorbed.setdefault(step.pass_.name, []).append(step.spellings[-1])
    reasons = {step.pass_.name: step.pass_.doc for step in steps}
    idle = [(", ".join(numbers), f"`{name}`", first_line(reasons[name])) for name, numbers in absorbed.items()]
    patterns = {pattern.name: pattern for pattern in builtin_catalogue().fusion_patterns}
    ordered = list(dict.fromkeys((*(name for model in MODELS.values() for name in model.patterns), *sorted(patterns))))
    fusions = [
        (f"`{name}`", _targets_of(name), patterns[name].direction.value, first_line(patterns[name].doc))
        for name in ordered
    ]
    return page(
        "Passes and fusion patterns",
        "Passes run in this order, each from its `opt_level` on and where its condition holds. `--disable_pass` and "
        "`--enable_pass` take `stage.pass`, the number (but for the fusion group), or the pass's name for all its steps. "
        "Numbers below 20 are those of MindSpore 2.10, and so are the conditions: `kernel_generator` is DVM on Ascend "
        "unless given.",
        table(("number", "pass", "from level", "only when", "why it runs here"), rows),
        "## Passes of MindSpore without work here\n\nThey keep their numbers, and flags may name them.",
        table(("number", "pass", "why there is nothing to do"), idle),
        "## Fusion patterns",
        "The splitter tries the fusion patterns of its target in order (`graphkernel/cluster/split_models.py`), again and "
        "again until none applies. A pattern says which neighbours an area wants in its kernel: producers (forward) or users "
        "(backward).",
        table(("pattern", "targets", "direction", "takes in"), fusions),
    )


def _targets_of(pattern: str) -> str:
    """The targets in whose order a pattern stands."""
    return " ".join(target for target, model in MODELS.items() if pattern in model.patterns)


def operators() -> str:
    """Every operator."""
    rows = [
        (
            f"`{op.name}`",
            f"`{call(snake_case(op.name))}`",
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
    ids: dict[str, list[str]] = {}
    for number, names in RULES_BY_ID.items():
        for name in names if "." in number else ():
            ids.setdefault(name, []).append(number)
    rows = [
        (
            f"`{rule.name}`",
            f"`{rule.equation}`",
            rule.safety.name,
            rule.integers.name,
            given_fact(rule),
            " ".join(ids.get(rule.name, ())),
            first_line(rule.doc),
        )
        for rule in builtin_catalogue().rules
    ]
    return page(
        "Rules",
        "EXACT rules give the same bits for every value, infinities and NaN included, or the correctly rounded value of what "
        "the left side only approximates; ROUNDING rules may round differently and fire with `--exact_precision_mode=false`; "
        "DOMAIN rules need a fact, and fire with `--numerics=fast` or where range analysis proves the fact named under "
        "`given`, which makes them what stands there.",
        "Flags take a rule's name, or the id that MindSpore gives it: `tier.index` of the newest generation, or the plain "
        "number of the first. MindSpore's mistakes are not repeated: 2.4 has a wrong sign there, 1.26 to 1.29 fail for NaN.",
        table(("rule", "equation", "on floats", "on integers", "given", "MindSpore's id", "remark"), rows),
    )


def given_fact(rule: Rule) -> str:
    """``ROUNDING: 0 <= x``."""
    if rule.given is None:
        return ""
    facts = ", ".join(f"{name} {describe(range_)}" for name, range_ in rule.given.ranges.items())
    return f"{rule.given.promise.name}: {facts}"


def describe(range_: Range) -> str:
    """A range in words."""
    low = f">= {range_.low:g}" if math.isfinite(range_.low) else ""
    high = f"<= {range_.high:g}" if math.isfinite(range_.high) else ""
    nan = "" if range_.nan else "no NaN"
    return " and ".join(filter(None, (low, high, nan)))


def expanders() -> str:
    """Every expander: what it makes of its operator, and where it is on by default."""
    rows = [
        (
            f"`{entry.name}`",
            ", ".join(target for target in CLUSTER_OPS if entry.name in expand_ops(target)) or "by flag",
            first_line(entry.doc),
        )
        for entry in sorted(builtin_catalogue().expanders, key=lambda entry: entry.name)
    ]
    return page(
        "Expanders",
        "What composite operators become. `on` names the targets that expand an operator by default; "
        "`--enable_expand_ops=NAME` does so elsewhere, `--disable_expand_ops=NAME` stops it.",
        table(("operator", "on", "formula"), rows),
    )


def call(name: str) -> str:
    """How an operator is called."""
    own = signature(function_called(name))
    bare = (each.replace(annotation=Parameter.empty) for each in own.parameters.values())
    return f"{name}{own.replace(parameters=list(bare), return_annotation=Signature.empty)}"


def first_line(doc: str) -> str:
    """The first sentence line of a docstring, as Markdown."""
    line = doc.strip().partition("\n")[0]
    return re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", lambda found: f"`{found[1] or found[2]}`", line)


def has_expander(name: str) -> bool:
    """True when the catalogue can rewrite the operator."""
    return any(entry.name == name for entry in builtin_catalogue().expanders)


if __name__ == "__main__":
    main()
