"""The logging tree follows GLOG_v, in programs that set up no logging of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import graphkernel as gk
gk.optimize(gk.trace(lambda x: x * 2.0 + 1.0, gk.spec((4, 4))), opt_level=1)
gk.optimize(gk.trace(lambda x: x * 2.0 + 1.0, gk.spec((4, 4))), opt_level=1)
"""


def printed(**variables: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("GLOG_v", "GRAPHKERNEL_LOG")}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return found.stderr.splitlines()


def test_without_a_wish_nothing_is_printed() -> None:
    assert printed() == []


@pytest.mark.parametrize("wish", [{"GLOG_v": "1"}, {"GRAPHKERNEL_LOG": "info"}])
def test_info_prints_each_pass_of_each_run_once(wish: dict[str, str]) -> None:
    lines = printed(**wish)
    on = "INFO graphkernel.passes: graph kernel pass stage1_cluster_4_graph_kernel_cluster is enabled."
    off = "INFO graphkernel.passes: graph kernel pass stage2_highlevelopt1_3_arithmetic_simplify is disabled."
    assert [lines.count(line) for line in (on, off)] == [2, 2]


def test_errors_only() -> None:
    assert printed(GLOG_v="3", MS_DEV_GRAPH_KERNEL_FLAGS="--opt_lvel=1") == []
