"""What loaded kernels of each target can do beside being called; a kernel does without the abilities that its entry lacks."""

from __future__ import annotations

import kernel_examples as examples
import numpy as np
import pytest

from kernelgen import compile
from kernelgen.native.call import CheckingEntry
from kernelgen.targets.entries import CachedEntry, DeviceEntry, EstimatingEntry, FeaturedEntry, SampledEntry

ABILITIES = (CheckingEntry, CachedEntry, DeviceEntry, EstimatingEntry, FeaturedEntry, SampledEntry)
HAS = {
    "cpu": {CheckingEntry, CachedEntry},
    "gpu": {DeviceEntry, EstimatingEntry, SampledEntry},
    "gpu:hip": set(),
    "ascend": {FeaturedEntry, SampledEntry},
    "python": set(),
}


@pytest.mark.parametrize("target", HAS)
def test_abilities_of_each_target(target: str) -> None:
    kernel = compile(examples.softmax(), target)
    assert {ability for ability in ABILITIES if isinstance(kernel.entry, ability)} == HAS[target]


def test_a_kernel_does_without_abilities_that_its_entry_lacks() -> None:
    kernel = compile(examples.softmax(), "python")
    assert (kernel.cached, kernel.runs_on_device, kernel.estimate(), kernel.resources.estimate) == (
        False,
        False,
        None,
        None,
    )
    kernel.load()
    assert kernel.without_device() is kernel
    x = np.zeros([dim if isinstance(dim, int) else 3 for dim in kernel.desc.inputs[0].shape], np.float32)
    (y,) = kernel(x)
    np.testing.assert_allclose(y.sum(-1), 1, rtol=1e-6)
    assert kernel.sample((x,), (y,)) is None
