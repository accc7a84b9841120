from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.decisions import DecisionLog

STEP = """
graph step(p: f32[N], v: f32[N]) {
  s: f32[N] = Add(p, v)
  a: f32[N] = Assign(p, s)
  t: f32[N] = CumProd(s, axis=0)
  return t, a -> p
}
"""


@pytest.mark.parametrize("level", [1, 2])
def test_an_assigned_value_is_stored_once(level: int) -> None:
    log = DecisionLog()
    graph = gk.parse(STEP)
    after = gk.optimize(graph, opt_level=level, flags="--enable_cluster_ops=Assign", log=log)
    (kernel,) = [node for node in after.operators if node.body is not None]
    assert len(kernel.outs) == (1 if level == 2 else 2)
    assert len(log.with_code("assigned-value-read")) == level - 1
    p, v = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    results = gk.compile(after)(p, v)
    np.testing.assert_array_equal(results[0], [1, 2, 6, 24])
    np.testing.assert_array_equal(results[1], [1, 2, 3, 4])
    np.testing.assert_array_equal(p, [1, 2, 3, 4])
