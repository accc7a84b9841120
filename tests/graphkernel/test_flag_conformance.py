"""The flag grammar against what the real MindSpore made of 147 flag strings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphkernel.options import Environment, Options

RUNS = Path(__file__).parents[3] / "shared" / "mindspore_reference" / "flag_runs"
DEVIATIONS = {
    ("grammar_newline_between", "opt_level"): "every white space separates flags here, a blank only there",
    ("grammar_newline_between", "dump_as_text"): "the same",
    ("grammar_tab_between", "opt_level"): "the same",
    ("grammar_tab_between", "dump_as_text"): "the same",
    ("grammar_neg_int64", "composite_op_limit_size"): "a kernel of -5 operators is refused here",
    ("level_minus1", "opt_level"): "-1 wraps around to 3 there, and is refused here",
}


def runs() -> list[dict[str, Any]]:
    """The runs whose flags came from the environment alone and left the feature on."""
    records = [json.loads(file.read_text()) for file in sorted(RUNS.glob("*.json"))]
    return [r for r in records if r["graph_kernel_enabled"] and r["flags"] is not None and not r.get("files")]


def effective(options: Options, key: str) -> object:
    value = options.ops_level if key == "fusion_ops_level" else getattr(options, key)
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.skipif(not RUNS.is_dir(), reason=f"no MindSpore reference at {RUNS}")
def test_the_same_flags_give_the_same_options() -> None:
    differing: set[tuple[str, str]] = set()
    for record in runs():
        base = Options(opt_level=2 if record["enable_graph_kernel_context"] else 0)
        options = Options.resolve(environment=Environment(flags=record["flags"]), base=base)
        expected = record["effective_flags"] or {}
        known = expected.keys() & Options.model_fields.keys()
        differing |= {(record["run"], key) for key in known if effective(options, key) != expected[key]}
    assert differing == DEVIATIONS.keys()
