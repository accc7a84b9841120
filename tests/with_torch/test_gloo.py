"""Ranks that torch.distributed connects compute what one process computes."""

from __future__ import annotations

from pathlib import Path

from tests.ranks.checks import check
from tests.ranks.processes import run_job


def test_two_processes(tmp_path: Path) -> None:
    check(run_job("gloo", 2, tmp_path))
