"""What holds of the processes of a job: all ranks did the same, and found what one process finds."""

from __future__ import annotations

import numpy as np

from tests.ranks.processes import Rank
from tests.ranks.programs import alone


def check(found: list[Rank]) -> None:
    for rank in found:
        assert rank.problems == []
        assert rank.logs == found[0].logs
        assert all(rank.logs.values())
        for key, array in rank.results.items():
            name, _, number = key.split(".")
            near(array, alone(name)[int(number)], key)


def near(found: np.ndarray, wanted: np.ndarray, told: str = "") -> None:
    """Sums over ranks are added in another order."""
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6, err_msg=told)
