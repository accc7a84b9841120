"""Names of numpy and torch: what is written instead of each works, and whoever uses them is told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import FrontendError
from graphkernel.ops.tensor.other_names import SAME, WRITTEN

X = np.arange(32, dtype=np.float32).reshape(4, 8) / 8 + 0.25
SPECS = (gk.spec((4, 8)), gk.spec((4, 8)), gk.spec((8, 5)), gk.spec((4, 8), "bool"), gk.spec(3, "int64"))


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_what_is_written_instead_works(name: str) -> None:
    def function(x: Any, y: Any, w: Any, condition: Any, i: Any) -> Any:
        found = eval(WRITTEN[name], {"ops": ops, "np": np, "x": x, "y": y, "w": w, "condition": condition, "i": i})
        return found if isinstance(found, ops.Tensor | np.ndarray | int) else found[0]

    gk.trace(function, *SPECS)
    assert name not in ops.OPS
    with pytest.raises(AttributeError) as told:
        getattr(ops, name)
    assert str(told.value) == f"no operator function {name!r}; write {WRITTEN[name]}"


@pytest.mark.parametrize(("name", "function"), [
    ("where", lambda x: np.where(x > 0.5, x, -x)), ("sum", lambda x: np.sum(x, -1)), ("mean", lambda x: np.mean(x, -1)),
    ("var", lambda x: np.var(x, -1)), ("std", lambda x: np.std(x, -1)), ("cumsum", lambda x: np.cumsum(x, -1)),
    ("clip", lambda x: np.clip(x, 0.0, 1.0)), ("log10", np.log10), ("stack", lambda x: np.stack([x, x])),
    ("exp2", np.exp2), ("norm", lambda x: np.linalg.norm(x, axis=-1)), ("arctan2", lambda x: np.arctan2(x, x)),
    ("swapaxes", lambda x: np.swapaxes(x, 0, 1)), ("concatenate", lambda x: np.concatenate([x, x])),
])  # fmt: skip
def test_what_is_written_instead_means_the_same(name: str, function: Any) -> None:
    def ours(x: Any) -> Any:
        return eval(
            WRITTEN[name], {"ops": ops, "np": np, "x": x, "y": x if name != "where" else -x, "condition": x > 0.5}
        )

    np.testing.assert_allclose(gk.evaluate(gk.trace(ours, X), [X])[0], function(X), rtol=1e-5)


def test_names_that_are_the_same_are_operators() -> None:
    assert all(callable(getattr(ops, name)) for name in SAME)


def test_other_names_get_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"no operator function 'sofmax' \(did you mean 'softmax'\?\)"):
        getattr(ops, "sofmax")  # noqa: B009  # the look-up is the point


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: np.exp(x), r"np\.exp takes no traced tensor; write ops\.exp\(x\)"),
    (lambda x: np.where(x > 0, x, 0), r"np\.where takes no traced tensor; write ops\.select"),
    (lambda x: np.sum(x), r"np\.sum takes no traced tensor; write ops\.reduce_sum"),
    (lambda x: np.hypot(x, x), r"np\.hypot takes no traced tensor$"),
    (lambda x: np.add.reduce(x), r"np\.add takes no traced tensor"),
    (lambda x: x[x > 0], r"x\[mask\] would have a shape .* use ops\.select"),
    (lambda x: x[np.array([0, 1])], r"use ops\.gather"),
    (lambda x: x[[0, 1]], r"use ops\.gather"),
    (lambda x: x[1.5], "indexed by numbers and slices, not by 1.5"),
    (lambda x: x[True], "indexed by numbers and slices, not by True"),
    (lambda x: len(x), r"write x\.shape\[0\]"),
    (lambda x: float(x), r"write x\.astype\('float32'\)"),
    (lambda x: math.exp(x), r"ops\. where math\. stands"),
    (lambda x: int(x), r"write x\.astype\('int32'\)"),
    (lambda x: [1, 2][x], r"cannot count or index"),
    (lambda x: list(range(x)), r"cannot count or index"),
    (lambda x: complex(x), r"write ops\.complex"),
    (lambda x: round(x), r"write ops\.round\(x\)"),
    (lambda x: x.__setitem__(0, 1), r"cannot be written into: .*ops\.assign"),
])  # fmt: skip
def test_what_needs_values_is_told(function: Any, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        gk.trace(function, gk.spec((4, 8)))


@pytest.mark.parametrize(("name", "message"), [
    ("exp", r"a traced tensor has no 'exp'; write ops\.exp\(x\)"),
    ("unsqueeze", r"a traced tensor has no 'unsqueeze'; write ops\.expand_dims\(x, 0\)"),
    ("item", r"return the tensor, and call \.item\(\) on the result"),
    ("frobnicate", r"a traced tensor has no 'frobnicate'$"),
])  # fmt: skip
def test_methods_of_others_are_told(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        gk.trace(lambda x: getattr(x, name)(), gk.spec((4, 8)))


@pytest.mark.parametrize("function", [
    lambda x, a: a + x, lambda x, a: a - x, lambda x, a: a * x, lambda x, a: a / x, lambda x, a: a // x,
    lambda x, a: a % x, lambda x, a: a**x, lambda x, a: a < x, lambda x, a: a <= x, lambda x, a: a > x,
    lambda x, a: a >= x, lambda x, a: a == x, lambda x, a: a != x, lambda x, a: a.T @ x, lambda x, a: (a > 1) & (x > 2),
    lambda x, a: (a > 1) | (x > 2), lambda x, a: 5 // x, lambda x, a: 5 % x, lambda x, a: +x, lambda x, a: a[0] * x,
    lambda x, a: np.float32(2) * x, lambda x, a: x[np.int64(1)] - np.float32(3),
])  # fmt: skip
def test_an_array_may_stand_on_the_left(function: Any) -> None:
    other = X[::-1].copy() + 0.5
    (found,) = gk.evaluate(gk.trace(lambda x: function(x, other), X), [X])
    expected = function(X, other)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)
