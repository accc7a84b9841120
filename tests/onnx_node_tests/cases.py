"""The test cases that the installed onnx makes for every operator and opset."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto


@dataclass(frozen=True, eq=False)
class NodeCase:
    """A model, and what it must give for each set of inputs. ``rtol`` and ``atol`` are onnx's."""

    name: str
    model: ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float


def node_cases(text: str = "") -> list[NodeCase]:
    """The cases whose name contains ``text``; onnx seeds their numbers, so they are the same in every run."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    return [
        NodeCase(case.name, case.model, case.data_sets, case.rtol, case.atol)
        for case in found
        if text in case.name and case.model is not None and case.data_sets is not None
    ]
