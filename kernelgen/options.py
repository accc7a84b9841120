"""The only reader of the environment in this package."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Where compiled kernels are kept: ``GRAPHKERNEL_CACHE_DIR``, else the user's cache directory."""
    return Path(os.environ.get("GRAPHKERNEL_CACHE_DIR") or platformdirs.user_cache_dir("graphkernel"))
