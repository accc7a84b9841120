from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphkernel as gk
import graphkernel.frontends.jit
from graphkernel import ops
from graphkernel.errors import OptionError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@gk.jit
def scaled(x: Any) -> Any:
    """Twice and one more."""
    return ops.add(ops.mul(x, 2.0), 1.0)


def test_one_executable_for_each_signature() -> None:
    for x in (X, X + 1, X[:1], X.astype(np.float64)):
        assert (scaled(x) == x * 2 + 1).all()
    assert [str(types[0]) for types in scaled.executables] == ["f32[2, 3]", "f32[1, 3]", "f64[2, 3]"]
    assert scaled.executable(X).report.kernel_calls == 1


def test_it_looks_like_the_function() -> None:
    assert getattr(scaled, "__name__", "") == "scaled"
    assert scaled.__doc__ == "Twice and one more."


def test_options_and_several_results() -> None:
    @gk.jit(opt_level=0)
    def both(x: Any, y: Any) -> Any:
        return ops.add(x, y), ops.mul(x, y)

    total, product = both(X, X)
    assert (total == X * 2).all()
    assert (product == X * X).all()
    assert both.executable(X, X).report.kernel_calls == 0


def test_out_is_passed_on() -> None:
    buffer = np.zeros_like(X)
    assert scaled(X, out=(buffer,)) is buffer
    assert (buffer == X * 2 + 1).all()


@pytest.mark.parametrize("options", [{"flags": "--opt_lvel=1"}, {"target": "tpu"}, {"flags": "--disable_pass=nothing"}])
def test_wrong_options_are_refused_where_they_are_written(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        gk.jit(**options)(lambda x: x)
    with pytest.raises(OptionError):
        gk.jit(lambda x: x, **options)


def test_the_executables_of_the_latest_calls_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphkernel.frontends.jit, "KEPT_EXECUTABLES", 3)
    twice = gk.jit(lambda x: ops.add(x, x), opt_level=0)
    for rows in (1, 2, 3, 1, 4):
        assert (twice(np.ones((rows, 2), np.float32)) == 2).all()
    assert [str(types[0]) for types in twice.executables] == ["f32[3, 2]", "f32[1, 2]", "f32[4, 2]"]
