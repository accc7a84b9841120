"""Every plan that a test compiles is verified and runs in poisoned memory.

A test about the memory of a release build is marked ``release_memory``.
"""

from __future__ import annotations

from typing import Any

import pytest

from graphkernel import driver, recall
from graphkernel.frontends import known_models
from graphkernel.runtime.cuda.device import NoDevice
from graphkernel.runtime.plan.verify_plan import verify_plan


@pytest.fixture(autouse=True)
def checked_plans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver as with ``enable_debug_mode``; on a device plans are verified only, since waiting would change them."""
    if request.node.get_closest_marker("release_memory"):
        return
    released = driver._executable

    def checked(plan: Any, report: Any, device: Any, replan: Any, *, is_checked: bool) -> Any:
        verify_plan(plan)
        return released(plan, report, device, replan, is_checked=is_checked or isinstance(device, NoDevice))

    monkeypatch.setattr(driver, "_executable", checked)
    for module in (recall, known_models):
        monkeypatch.setattr(module, "is_kept", lambda *_: False)
