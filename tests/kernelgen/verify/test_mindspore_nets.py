"""Every kernel that MindSpore handed to AKG in the recorded networks compiles, agrees with the reference and is checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.read import load_desc
from kernelgen.verify import Status, verify

FACTS = Path(__file__).parents[2] / "facts"


def kernels() -> Iterator[tuple[str, dict[str, Any]]]:
    for net, found in json.loads((FACTS / "mindspore_kernels.json").read_text()).items():
        for position, kernel in enumerate(found):
            yield f"{net}-{position}", untrimmed(kernel) if "trimmed" in kernel else kernel


def untrimmed(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """The records keep ten operators of the longest chain and the names of all: its five operators repeat."""
    shown, names = kernel["op_desc"], kernel["op_names"]
    period = 5
    assert [op["name"] for op in shown] == names[: len(shown)]
    ops = [*shown]
    for position in range(len(shown), len(names)):
        op = json.loads(json.dumps(shown[period + position % period]))
        assert op["name"] == names[position]
        op["input_desc"][0][0]["tensor_name"] = f"output_0_{position - 1}"
        op["output_desc"][0]["tensor_name"] = f"output_0_{position}"
        ops.append(op)
    return {**kernel, "op_desc": ops}


KERNELS = dict(kernels())


def description(name: str) -> KernelDesc:
    return load_desc(KERNELS[name])


def test_no_record_was_overlooked() -> None:
    assert len(KERNELS) == 83


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_agrees_and_is_checked(name: str) -> None:
    record = verify(description(name), checked=True)
    assert (record.status, record.message) == (Status.PASSED, "")
    assert "terms" in record.checked["kernel"] or "terms" in record.checked.get("small", ())
