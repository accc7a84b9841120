"""The golden collector rejects a wrong graph and writes the right one when asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.golden import blocks, update
from tests.support.sources import ROOT

TEXT = """== first | graph_kernel_cse
graph g(x: f32[4]) {
  t0: f32[4] = Exp(x)
  return t0
}
--
wrong

== second | graph_kernel_expander | --disable_expand_ops=Square
graph g(x: f32[4]) {
  t0: f32[4] = Square(x)
  return t0
}
--
"""


def test_blocks_read_and_print() -> None:
    first, second = blocks(TEXT)
    assert (first.case, first.passes, first.flags, first.after) == ("first", ("graph_kernel_cse",), "", "wrong")
    assert second.flags == "--disable_expand_ops=Square"
    assert second.after == ""
    assert "\n".join(map(str, (first, second))).strip() == TEXT.strip()


def test_outcome_is_that_of_the_passes() -> None:
    for block in blocks(TEXT):
        assert block.outcome() == block.before


def test_update_rewrites_one_block(tmp_path: Path) -> None:
    path = tmp_path / "case.gk"
    path.write_text(TEXT)
    update(path, "first", "right")
    first, second = blocks(path.read_text())
    assert (first.after, second.after) == ("right", "")


def test_wrong_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "case.gk"
    path.write_text(TEXT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "case 'first': expected\nwrong" in done.stdout
