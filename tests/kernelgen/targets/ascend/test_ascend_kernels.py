"""Hand-written kernels: read, run, proved, and equal to numpy."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.ascendc.printer import print_kernel
from kernelgen.ascendc.reader import read_kernel
from tests.kernelgen.targets.ascend.kernels import SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_kernel_is_clean_and_right(name: str) -> None:
    sample = SAMPLES[name]
    report, outputs = sample.run()
    assert report.clean, report
    assert report.completed
    for output, expected in sample.expected.items():
        np.testing.assert_allclose(outputs[output], expected, rtol=sample.tolerance, atol=sample.tolerance)


@pytest.mark.parametrize("name", SAMPLES)
def test_text_prints_back(name: str) -> None:
    text = SAMPLES[name].text
    kernel = read_kernel(text)
    assert print_kernel(kernel) == text
    assert read_kernel(print_kernel(kernel)) == kernel
