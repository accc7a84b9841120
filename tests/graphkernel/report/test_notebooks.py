"""What notebooks show: a page's part of each public value, and one short line where only text is shown."""

from __future__ import annotations

from typing import Any

import pytest

import graphkernel as gk
from graphkernel import ops

GRAPH = gk.trace(lambda x: ops.exp(x * 2.0), gk.spec(("N", 4)), name="net")


def long(x: Any) -> Any:
    for _ in range(100):
        x = ops.exp(x)
    return {"<b>": x}


@pytest.mark.parametrize(("value", "shown"), [
    (GRAPH, "<pre>graph net(x: f32[N, 4]) {\n  t0: f32[N, 4] = Mul(x, 2.0)"),
    (gk.trace(long, gk.spec(4)), "long: 100 operators\ninputs\n  x: f32[4]\noutputs\n  &lt;b&gt;: f32[4]"),
    (gk.explain(GRAPH), "<p>net: 2 operators became 1 kernel and 0 others</p>"),
    (gk.compile(GRAPH), "<h4>kernels</h4>"),
])  # fmt: skip
def test_a_value_shows_itself(value: Any, shown: str) -> None:
    assert shown in value._repr_html_()
    assert "<b>" not in value._repr_html_()
    assert "\n" not in repr(value)
    assert len(repr(value)) < 200
