"""An ONNX file on onnxruntime as it is, with nothing of ours between: what everything is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphkernel.errors import OptionError, RuntimeFailure

FATAL = 4  # the level of onnxruntime's log: its errors come as exceptions, its warnings are about the model


class WholeModel:
    """A callable: arrays in the order of the model's inputs give its outputs."""

    def __init__(self, path: Path, options: Mapping[str, object] | None = None) -> None:
        """``options``: attributes of onnxruntime's SessionOptions, ``{"intra_op_num_threads": 2}``, or config entries."""
        import onnxruntime  # only comparing needs it

        if path.suffix != ".onnx":
            raise OptionError(f"{path}: only an .onnx file runs on onnxruntime as it is")
        session_options = onnxruntime.SessionOptions()
        session_options.log_severity_level = FATAL
        for name, value in (options or {}).items():
            if "." in name:
                session_options.add_session_config_entry(name, str(value))
            else:
                setattr(session_options, name, value)
        try:
            self._session: Any = onnxruntime.InferenceSession(path, session_options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no class in common
            raise RuntimeFailure(f"onnxruntime does not load {path}: {error}") from error
        self.inputs = tuple(given.name for given in self._session.get_inputs())

    def __call__(self, *arrays: np.ndarray) -> tuple[Any, ...]:
        """Runs it. Raises ``RuntimeFailure`` with what onnxruntime says."""
        try:
            return tuple(self._session.run(None, dict(zip(self.inputs, arrays, strict=True))))
        except Exception as error:
            raise RuntimeFailure(f"onnxruntime fails on the model as it is: {error}") from error
