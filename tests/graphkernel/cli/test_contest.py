"""Contestants run in processes of their own, and take turns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkernel.cli.contest import Made, OnnxRuntime, contest
from graphkernel.cli.measuring import busy
from graphkernel.errors import InputError, RuntimeFailure
from graphkernel.step_hooks import Progress

X = np.arange(6.0)


@dataclass(frozen=True)
class Diary:
    """Writes down who runs, and in which process."""

    name: str
    path: Path
    hundredths: int = 1

    def make(self, tell: Progress) -> Made:
        tell("sharpening the pencil", 1, 2)
        held = np.ones(self.hundredths << 20, np.uint8)

        def run(*arrays: Any) -> list[Any]:
            with self.path.open("a", encoding="ascii") as file:
                print(self.name, os.getpid(), file=file)
            return [arrays[0] * 2, held[:1]]

        return run, None


@dataclass(frozen=True)
class Refusing:
    def make(self, tell: Progress) -> Made:
        raise InputError("not with me")


@dataclass(frozen=True)
class Dying:
    def make(self, tell: Progress) -> Made:
        os._exit(3)


def test_everybody_has_a_process_and_measurements_take_turns(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    diary = tmp_path / "diary"
    rivals = {"a": Diary("a", diary), "b": Diary("b", diary, hundredths=200)}
    found = contest(rivals, [X], 3, lambda *said: heard.append(said))
    entries = [line.split() for line in diary.read_text().splitlines()]
    assert len({process for _, process in entries} | {str(os.getpid())}) == 3
    runs = [name for name, _ in entries]
    order = [name for position, name in enumerate(runs) if position == 0 or runs[position - 1] != name]
    assert order == ["a", "b"] * 4  # once to get ready, then in turns
    assert ("a: sharpening the pencil", 1, 2) in heard
    assert ("measuring", 2, 3) in heard
    for outcome in found.values():
        assert np.array_equal(outcome.results[0], X * 2)
        assert outcome.seconds.least <= outcome.seconds.median <= outcome.seconds.greatest
    assert found["b"].peak - found["a"].peak > 100 << 20


@pytest.mark.parametrize(("rival", "said"), [
    (Refusing(), "late: not with me"),
    (Dying(), "late: its process died"),
    (OnnxRuntime(Path("nothing.onnx")), "late: onnxruntime does not load nothing.onnx"),
    (OnnxRuntime(Path("graph.gk")), "late: graph.gk: only an .onnx file"),
])  # fmt: skip
def test_who_fails_is_named(rival: Any, said: str) -> None:
    with pytest.raises(RuntimeFailure, match=said):
        contest({"late": rival}, [X], 1, lambda *_: None)


def test_a_busy_machine_is_told_of() -> None:
    assert busy(1.4, 2) == ""
    assert busy(16.44, 2) == "this machine is busy (load 16.4 on 2 processors): these times say little"
