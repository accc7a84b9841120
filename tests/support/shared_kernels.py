"""Kernels that tests of several files make for each other: each is made once in a run, and recalled as users recall theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CACHE_VARIABLE = "GRAPHKERNEL_CACHE_DIR"


@pytest.fixture
def shared_kernels(made_by_this_code: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache for the run that only tests with this fixture write: they change nothing that makes a kernel of a description.

    What changes the graph or the description, such as a cost of :mod:`graphkernel.cluster`, may be changed.
    """
    monkeypatch.setenv(CACHE_VARIABLE, str(Path(os.environ[CACHE_VARIABLE], "shared")))
