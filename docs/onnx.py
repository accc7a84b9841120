"""The page of ONNX's operators: what becomes operators of ours, which kernels may hold, and what onnxruntime runs."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from docs.markdown import page, table
from docs.measured import read
from graphkernel.frontends.onnx.functions import PRODUCTS
from graphkernel.frontends.onnx.rule_table import rules

WRITTEN_OUT = "operators of ours, as ONNX writes it out"
INTRODUCTION = """Every model that onnxruntime runs is meant to load. An operator with a rule becomes operators of ours: they
are expanded, simplified and fused into kernels where that is possible; so does one that ONNX itself writes out in operators
that have rules (unless there are products in it, which a library computes in one piece). Any other operator, of whatever
domain the installed onnxruntime knows, stays as it is, and onnxruntime runs it between the kernels. A rule declines a node
that it cannot say (a data type that we do not calculate in, amounts that are known at run time only); onnxruntime then runs
that node as well.

What became of a model: `graphkernel report MODEL`; of one operator: `graphkernel explain MODEL --why Conv Relu`."""


def onnx() -> Mapping[str, str]:
    """The page."""
    from onnx import defs

    known = sorted({schema.name for schema in defs.get_all_schemas() if not schema.domain and not schema.deprecated})
    ours = rules()
    rows = [(f"`{name}`", _becomes(name, ours)) for name in known]
    count = sum(name in ours for name in known)
    written = sum(text == WRITTEN_OUT for _, text in rows)
    return {
        "docs/onnx.md": page(
            "ONNX operators",
            INTRODUCTION,
            _tests(),
            f"Of the {len(known)} operators of ONNX's own domain {count} have a rule, and {written} more are written out by "
            "ONNX itself in operators that have one.",
            table(("operator", "becomes"), rows),
        )
    }


def _becomes(name: str, ours: Container[str]) -> str:
    """What becomes of an operator."""
    from onnx import defs

    schema: Any = defs.get_schema(name)
    if name in ours:
        return "operators of ours"
    if schema.has_context_dependent_function:
        return "onnxruntime, or operators of ours as ONNX writes it out"
    kinds = {node.op_type for node in schema.function_body.node} if schema.has_function else {name}
    return WRITTEN_OUT if all(kind in ours for kind in kinds - PRODUCTS) and not kinds & PRODUCTS else "onnxruntime"


def _tests() -> str:
    """What the committed run of ONNX's own tests says."""
    record = read("onnx_node_tests.json")
    if record is None:
        return ""
    level, least = record["levels"]["2"], min(each["passed"] for each in record["levels"].values())
    theirs: Mapping[str, str] = level["refused_where_onnxruntime_says"]
    ours_alone = sum(not failure for failure in theirs.values())
    rows = [(f"`{name}`", failure or "nothing: it runs there") for name, failure in theirs.items()]
    text = (
        f"ONNX's own operator tests ({level['cases']}, {record['date']}, onnx {record['versions']['onnx']}, onnxruntime "
        f"{record['versions']['onnxruntime']}): {least} pass at every level, at level 2 {_alone(level)} of {level['passed']} "
        f"without any other library; {level['wrong']} give a wrong answer, {level['excused']} another one than the test "
        f"expects for a reason (a random operator, or onnxruntime gives ours). {level['refused']} are refused, of which "
        f"onnxruntime runs {ours_alone}:"
    )
    return f"{text}\n\n{table(('refused', 'onnxruntime says'), rows)}"


def _alone(level: Mapping[str, Any]) -> int:
    """The cases that neither onnxruntime nor onnx's reference took part in."""
    return sum(count for who, count in level["passed_on"].items() if "onnx" not in who)
