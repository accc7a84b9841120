"""All hostile cases, in the order of the doors."""

from __future__ import annotations

from tests.hostile import (
    array_cases,
    composite_cases,
    onnx_cases,
    option_cases,
    text_cases,
    written_cases,
)

CASES = (
    *onnx_cases.CASES,
    *text_cases.CASES,
    *composite_cases.CASES,
    *array_cases.CASES,
    *option_cases.CASES,
    *written_cases.CASES,
)
