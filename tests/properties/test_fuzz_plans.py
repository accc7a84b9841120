"""Random plans; ``python -m tests.fuzz plans`` does many more of them."""

from __future__ import annotations

import pytest

from graphkernel.runtime.plan import placement
from tests.fuzz.plans import case


@pytest.mark.parametrize("seed", range(64))
def test_random_plans_give_the_meaning(seed: int) -> None:
    assert case(seed) is None


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views that count as part of the region that made their operand."""
    monkeypatch.setattr(placement.Placement, "differs_from", lambda hand, who, in_region: hand.who not in ("", who))
    assert any("reads" in _why(seed) for seed in range(20))


def _why(seed: int) -> str:
    try:
        return case(seed) or ""
    except Exception as error:
        return str(error)
