from __future__ import annotations

import time

import numpy as np

import graphkernel as gk
from graphkernel import ops
from graphkernel.runtime.measure import compare, profile


def test_contestants_take_turns() -> None:
    order: list[str] = []

    def sleeper(name: str, seconds: float) -> None:
        order.append(name)
        time.sleep(seconds)

    found = compare({"slow": lambda: sleeper("slow", 6e-3), "fast": lambda: sleeper("fast", 3e-3)}, 3)
    assert order[-6:] == ["slow", "fast"] * 3
    assert found["slow"].least >= 6e-3
    assert all(spread.least <= spread.median <= spread.greatest for spread in found.values())


def test_every_step_of_a_plan_is_timed() -> None:
    graph = gk.trace(lambda x, w: ops.exp(ops.matmul(x + 1.0, w)), gk.spec(("N", 4)), gk.spec((4, 4)))
    executable = gk.compile(graph, 2)
    times = profile(executable, [np.ones((3, 4), np.float32), np.ones((4, 4), np.float32)], 2)
    assert [(step.name, step.kind) for step in times] == [
        (step.name, "host" if step.name.startswith("region") else "kernel") for step in executable.plan.steps
    ]
    assert sum(step.seconds.median for step in times) > 0
