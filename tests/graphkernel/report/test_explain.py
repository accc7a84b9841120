from __future__ import annotations

import json
from typing import Any

import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.decisions import REASONS
from graphkernel.errors import GraphKernelError


def net(x: Any, w: Any) -> Any:
    return ops.exp(ops.matmul(ops.add(ops.mul(x, 2.0), 1.0), w))


EXPLANATION = gk.explain(gk.trace(net, gk.spec((3, 4)), gk.spec((4, 4))))


def test_summary_counts() -> None:
    first, *rest = EXPLANATION.summary.splitlines()
    assert first == "net: 4 operators became 2 kernels of 3 and 1 others"
    assert rest
    assert all(any(code in line for code in REASONS) for line in rest)


def test_everything_is_listed() -> None:
    assert len(str(EXPLANATION).splitlines()) == len(EXPLANATION.summary.splitlines()) + len(EXPLANATION.decisions)
    assert len(json.loads(EXPLANATION.to_json())["decisions"]) == len(EXPLANATION.decisions) > 0


def test_why_together_and_why_not() -> None:
    assert EXPLANATION.why("Mul", "Add").startswith("Mul and Add are both in kernel Fused_Mul_Add")
    assert EXPLANATION.why("Mul", "Exp").startswith("no kernel holds both Mul and Exp")


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(GraphKernelError, match=r"nothing is called 'MatNul' \(did you mean 'MatMul'\?\)"):
        EXPLANATION.why("MatNul", "Exp")
