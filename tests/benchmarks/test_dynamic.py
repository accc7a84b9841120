"""The benchmark of kernels for all sizes runs at small size, and refuses wrong numbers and unknown classes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kernelgen
from benchmarks import dynamic
from kernelgen.kernel import Kernel
from tests.support.sources import ROOT


def test_command_writes_the_ratio_of_each_class(tmp_path: Path) -> None:
    out = tmp_path / "dynamic.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "dynamic",
        "--json",
        str(out),
        "--tiny",
        "--case",
        "softmax",
        "--case",
        "adam",
    ]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120, stdout=subprocess.DEVNULL)
    record = json.loads(out.read_text())
    assert list(record["cases"]) == ["softmax", "adam"]
    assert all(case["tiny"]["ratio"]["median"] > 0 for case in record["cases"].values())
    assert record["cases"]["softmax"]["shapes"] == [["N", "M"]]


def test_every_class_names_sizes_for_all_its_symbols() -> None:
    for name, one in dynamic.CLASSES.items():
        desc = one.desc(name)
        assert desc.symbols, name
        for sizes in (one.within, one.beyond, one.tiny):
            assert set(sizes) == set(desc.symbols), name


def test_unknown_class_is_named() -> None:
    with pytest.raises(ValueError, match="no class sofmax; there are chain, "):
        dynamic.run(["sofmax"], tiny=True)


def test_wrong_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Kernel.__call__

    def wrong(kernel: Kernel, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        results = right(kernel, *inputs)
        return tuple(2 * result for result in results) if kernel.desc.symbols else results

    monkeypatch.setattr(Kernel, "__call__", wrong)
    with pytest.raises(ArithmeticError, match="softmax: "):
        dynamic.measured("softmax", tiny=True)


def test_one_kernel_is_compiled_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[str, ...]] = []
    right = kernelgen.compile
    monkeypatch.setattr(kernelgen, "compile", lambda desc: compiled.append(desc.symbols) or right(desc))
    dynamic.measured("rms_norm", tiny=True, rounds=1)
    assert [bool(symbols) for symbols in compiled] == [True, False]
