from __future__ import annotations

import numpy as np

import graphkernel as gk
from graphkernel import ops
from graphkernel.runtime.measure import profile


def test_every_step_of_a_plan_is_timed() -> None:
    graph = gk.trace(lambda x, w: ops.exp(ops.matmul(x + 1.0, w)), gk.spec(("N", 4)), gk.spec((4, 4)))
    executable = gk.compile(graph, 2)
    times = profile(executable, [np.ones((3, 4), np.float32), np.ones((4, 4), np.float32)], 2)
    assert [(step.name, step.kind) for step in times] == [
        (step.name, "host" if step.name.startswith("region") else "kernel") for step in executable.plan.steps
    ]
    assert sum(step.seconds.median for step in times) > 0


def test_host_steps_are_those_that_a_report_lists() -> None:
    graph = gk.trace(
        lambda table, index, w: ops.matmul(ops.exp(ops.gather(table, index, 0)) * 2.0, w),
        gk.spec((50, 64)), gk.spec((7,), "int64"), gk.spec((64, 8)),
    )  # fmt: skip
    executable = gk.compile(graph)
    arrays = [np.ones((50, 64), np.float32), np.zeros(7, np.int64), np.ones((64, 8), np.float32)]
    times = profile(executable, arrays, 1)
    assert {step.kind for step in times} == {"places", "kernel", "host"}
    assert [step.name for step in times if step.kind == "host"] == [entry.name for entry in executable.report.host]
