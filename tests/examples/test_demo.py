"""What the demo prints, of made-up times: it fits narrow terminals and compares with onnxruntime at its best."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import graphkernel as gk
from examples.demo import LEVELS, SETTINGS, WIDTH, Result, conclusion, show, show_kernels
from graphkernel.cli.contest import Outcome
from graphkernel.runtime.measure import Spread
from tests.support.onnx_models import model

X = np.ones((300, 224), np.float32)
NET = model([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Exp", ["r"], ["y"])], {"x": X})


def outcome(milliseconds: float) -> Outcome:
    seconds = Spread(milliseconds * 2e-3, milliseconds * 1e-3, milliseconds * 9e-3)
    return Outcome(seconds, 12.3, 1_234_567_890, (X,), None)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    path = tmp_path_factory.mktemp("demo") / "net.onnx"
    onnx.save(NET, path)
    report = gk.compile(gk.load(path), 2).report
    times = dict(
        zip([*SETTINGS, "unfused", *(f"level {level}" for level in LEVELS)], (100, 60, 70, 80, 50, 40, 45), strict=True)
    )
    outcomes = {name: outcome(each) for name, each in times.items()}
    outcomes["level 2"] = replace(outcomes["level 2"], report=report)
    return Result("sentence encoder", 1234, outcomes, dict.fromkeys(times, 3e-7))


def test_the_last_line_says_what_was_gained_over_the_best_of_onnxruntime(result: Result) -> None:
    told = " ".join(conclusion([result], 41.0).split())
    assert "1234 operators became 1 kernel call and 0 calls of onnxruntime" in told
    assert "1.50 times as fast as onnxruntime at its best" in told
    assert told.endswith("all levels agree with onnxruntime to 1e-05 of the largest value; 41 s")
    assert conclusion([result], 41.0, "this machine is busy").splitlines()[1] == "this machine is busy"
    wrong = replace(result, apart={**result.apart, "level 3": 1.0})
    assert "results differ from onnxruntime's" in conclusion([result, wrong], 41.0)


def test_every_line_fits(result: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(NET, tmp_path / "net.onnx")
    show(result, [X])
    show_kernels(result, tmp_path / "net.onnx", [X])
    print(conclusion([result], 1000.0))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "level 2         80     40  2.50x  12.3 s  1.1 GiB  3e-07" in lines
