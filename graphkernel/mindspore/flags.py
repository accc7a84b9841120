"""The flags of MindSpore that are read, with their types and defaults, and change nothing here; each says why."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

IDLE = "without effect: "
"""How the description of such a flag begins."""


def _idle(default: object, reason: str, **limits: Any) -> Any:  # what pydantic's Field takes and gives
    return Field(default=default, description=IDLE + reason, **limits)


class IdleFlags(BaseModel):
    """One field for each flag without effect."""

    enable_dynamic_batch: bool = _idle(False, "an extent may be a symbol in every kernel")
    enable_vectorization: bool = _idle(True, "kernelgen decides by cost")
    online_tuning: int = _idle(0, "nothing is measured at compile time", ge=0)
    repository_path: str = _idle("", "there is no repository of tuned kernels")
    cpu_refer_thread_num: int = _idle(8, "one pool of threads runs all kernels, see OMP_NUM_THREADS", ge=0)
    target_os: str = _idle("linux", "kernels are made for the machine at hand")
    cpu_arch: str = _idle("", "as target_os")
    cpu_feature: str = _idle("", "as target_os; for lesser processors there is GRAPHKERNEL_CPU")
    cpu_type: str = _idle("", "as cpu_feature")
    enable_lite_conv_tuning: bool = _idle(False, "belongs to MindSpore Lite")
    enable_cce_lib: bool = _idle(False, "there is no CCE library")
    enable_cce_lib_ops: tuple[str, ...] = _idle((), "as enable_cce_lib")
    enable_cce_lib_ops_only: tuple[str, ...] = _idle((), "as enable_cce_lib")
    disable_cce_lib_ops: tuple[str, ...] = _idle((), "as enable_cce_lib")
