"""The page of ONNX's operators: what becomes operators of ours, which kernels may hold, and what onnxruntime runs."""

from __future__ import annotations

from collections.abc import Mapping

from docs.markdown import page, table
from docs.measured import read
from graphkernel.frontends.onnx import rules

INTRODUCTION = """Every model that onnxruntime runs is meant to load. An operator with a rule becomes operators of ours: they
are expanded, simplified and fused into kernels where that is possible. Any other operator, of whatever domain the installed
onnxruntime knows, stays as it is, and onnxruntime runs it between the kernels. A rule declines a node that it cannot say (a
data type that we do not calculate in, amounts that are known at run time only); onnxruntime then runs that node as well.

What became of a model: `graphkernel report MODEL`; of one operator: `graphkernel explain MODEL --why Conv Relu`."""


def onnx() -> Mapping[str, str]:
    """The page."""
    from onnx import defs

    known = sorted({schema.name for schema in defs.get_all_schemas() if not schema.domain and not schema.deprecated})
    ours = rules()
    rows = [(f"`{name}`", "operators of ours" if name in ours else "onnxruntime") for name in known]
    count = sum(name in ours for name in known)
    return {
        "docs/onnx.md": page(
            "ONNX operators",
            INTRODUCTION,
            _tests(),
            f"Of the {len(known)} operators of ONNX's own domain {count} have a rule.",
            table(("operator", "becomes"), rows),
        )
    }


def _tests() -> str:
    """What the committed run of ONNX's own tests says."""
    record = read("onnx_node_tests.json")
    if record is None:
        return ""
    level = record["levels"]["2"]
    alone = level["passed_on"].get("nothing", 0) + level["passed_on"].get("numpy", 0)
    return (
        f"ONNX's own operator tests ({level['cases']}, {record['date']}, onnx {record['versions']['onnx']}, onnxruntime "
        f"{record['versions']['onnxruntime']}): {level['passed']} pass, {alone} of these without onnxruntime; "
        f"{level['refused']} are refused with a reason, {level['wrong']} give a wrong answer."
    )
