"""The log of decisions and its closed list of reason codes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from graphkernel import decisions
from graphkernel.decisions import REASONS, Decision, DecisionLog
from graphkernel.errors import CatalogueError


def test_a_log_is_read_by_code_and_by_name() -> None:
    log = DecisionLog()
    log.add("graph_kernel_splitter", "fused-pattern", "t0", "t1", "reduce_fwd_depth")
    log.add("graph_kernel_splitter", "not-fused-cycle", "t2", "t0")
    log.add("graph_kernel_expander", "expanded", "t3")
    assert len(log) == 3
    assert [decision.subject for decision in log.with_code("not-fused")] == ["t2"]
    assert [decision.code for decision in log.about("t0")] == ["fused-pattern", "not-fused-cycle"]


def test_what_is_told_later_stands_in_its_place_and_is_told_once() -> None:
    log, told = DecisionLog(), []
    log.add("p", "folded", "a")
    log.tell_later(lambda: told.append(1) or [Decision("p", "folded", "b"), Decision("p", "folded", "c")])
    log.add("p", "folded", "d")
    assert not told
    assert [decision.subject for decision in log] == ["a", "b", "c", "d"]
    assert len(log) == 4
    assert told == [1]


def test_a_decision_reads_as_a_sentence() -> None:
    assert str(Decision("p", "fused-pattern", "a", "b", "by x")) == "p: a -> b: fused-pattern: by x"
    assert REASONS["expanded"] in str(Decision("p", "expanded", "a"))


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(CatalogueError, match="did you mean 'fused-pattern'"):
        Decision("p", "fused-patern", "a")


def test_every_code_is_used_somewhere() -> None:
    """A reason that nothing gives is a promise that nothing keeps."""
    texts = {
        node.value
        for path in Path(decisions.__file__).parent.rglob("*.py")
        if path.name != "decisions.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert sorted(set(REASONS) - texts) == []
