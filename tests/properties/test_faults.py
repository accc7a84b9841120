"""What a process meets on a machine that it shares, each a few times; ``python -m tests.faults`` does more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import FAULTS

TIMES = {"killed": 2, "forked": 2, "interrupted": 5}


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_survived(name: str, tmp_path: Path) -> None:
    assert FAULTS[name](TIMES.get(name, 1), tmp_path) == []
