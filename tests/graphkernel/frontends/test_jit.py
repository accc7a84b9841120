from __future__ import annotations

import gc
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphkernel as gk
import graphkernel.frontends.jit
from graphkernel import ops
from graphkernel.errors import InputError, OptionError
from graphkernel.frontends.jit import Jitted

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def types_of(jitted: Jitted) -> list[str]:
    return [str(exe.inputs["x"]) for exe in jitted.executables]


@gk.jit
def scaled(x: Any) -> Any:
    """Twice and one more."""
    return ops.add(ops.mul(x, 2.0), 1.0)


def test_one_executable_for_each_signature() -> None:
    for x in (X, X + 1, X[:1], X.astype(np.float64)):
        assert (scaled(x) == x * 2 + 1).all()
    assert types_of(scaled) == ["f32[2, 3]", "f32[1, 3]", "f64[2, 3]"]
    assert scaled.executable(X).report.kernel_calls == 1


def test_it_looks_like_the_function() -> None:
    assert getattr(scaled, "__name__", "") == "scaled"
    assert scaled.__doc__ == "Twice and one more."
    assert repr(gk.jit(scaled.function)) == "<Jitted scaled: 0 executables>"
    assert repr(Scaled(2.0).forward).startswith("<<Jitted forward: ")


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
    assert types_of(twice) == ["f32[3, 2]", "f32[1, 2]", "f32[4, 2]"]


class Scaled:
    """A network as people write them."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @gk.jit
    def __call__(self, x: Any, shift: Any = 1.0) -> Any:
        return x * self.factor + shift

    @gk.jit(opt_level=1)
    def forward(self, x: Any) -> Any:
        return x * self.factor


def test_methods_know_their_object() -> None:
    two, three = Scaled(2.0), Scaled(3.0)
    for _ in range(2):
        assert (two(X) == X * 2 + 1).all()
        assert (three(X, shift=X) == X * 4).all()
        assert (three.forward(x=X) == X * 3).all()
    made = vars(Scaled)["__call__"].executables
    assert len(made) == 2
    assert [exe.input_names for exe in made] == [("x",), ("x", "shift")]
    assert two.forward.executable(X).report.opt_level == 1


def test_objects_are_not_kept_alive() -> None:
    one = Scaled(2.0)
    one(X)
    alive = weakref.ref(one)
    del one
    gc.collect()
    assert alive() is None


def test_arguments_stand_in_their_place_or_by_name() -> None:
    @gk.jit
    def weighed(x: Any, /, y: Any, *rest: Any, factor: Any = 2.0, **more: Any) -> Any:
        return x * factor + y + sum(rest) + more.get("bias", 0.0)

    for found in (
        weighed(X, X),
        weighed(X, y=X),
        weighed(X, X, factor=2.0),
        weighed(X, 0.0, X),
        weighed(X, 0.0, bias=X),
    ):
        assert (found == X * 3).all()
    assert (weighed(X, y=X, factor=np.float32(3)) == X * 4).all()
    assert weighed.executable(X, X, X, bias=X).input_names == ("x", "y", "rest_0", "bias")
    with pytest.raises(InputError, match="weighed: missing a required argument: 'y'"):
        weighed(X, factor=1.0)


@pytest.mark.parametrize("of", ["float16", "float32", "int32"])
def test_pythons_numbers_take_the_type_of_what_they_meet(of: str) -> None:
    x = X.astype(of)
    times = gk.jit(lambda x, k: x * k)
    assert times(x, 2).dtype == x.dtype
    assert (times(x, 3) == x * 3).all()
    assert times.executable(x, 2).input_names == ("x",)


def test_numbers_and_texts_are_known_when_the_function_is_traced() -> None:
    @gk.jit
    def reduced(x: Any, axis: int, mode: str = "sum", keep: bool = False) -> Any:
        return x.sum(axis, keep) if mode == "sum" else x.max(axis, keep)

    assert (reduced(X, 0) == X.sum(0)).all()
    assert (reduced(X, 1) == X.sum(1)).all()
    assert (reduced(X, 1, "max", keep=True) == X.max(1, keepdims=True)).all()


def test_numbers_that_are_equal_to_python_are_not_one_number() -> None:
    over = gk.jit(lambda x, k: ops.real_div(x, k))
    ones = np.ones(2, np.float32)
    assert (over(ones, 0.0) == np.inf).all()
    assert (over(ones, -0.0) == -np.inf).all()
    of = gk.jit(lambda x, k: ops.zeros_like(x) + (1.0 if k is True else 2.0))
    assert (of(ones, True) == 1).all()
    assert (of(ones, 1) == 2).all()


def test_containers_go_in_and_come_out() -> None:
    class Pair(NamedTuple):
        mean: Any
        rest: Any

    @gk.jit
    def split(batch: Any, parts: Any) -> Any:
        y = batch["x"] + parts[0] * parts[1][0]
        return {"y": y, "pair": Pair(y * 2.0, [y, None, (3.0,)]), "none": None}

    found = split({"x": X, "note": "as it is"}, [X, (X, None)])
    y = X + X * X
    assert list(found) == ["y", "pair", "none"]
    assert (found["y"] == y).all()
    assert isinstance(found["pair"], Pair)
    assert (found["pair"].mean == y * 2).all()
    assert (found["pair"].rest[0] == y).all()
    assert found["pair"].rest[1] is None
    assert found["pair"].rest[2][0] == 3
    exe = split.executable({"x": X, "note": "as it is"}, [X, (X, None)])
    assert exe.input_names == ("batch_x", "parts_0", "parts_1_0")
    assert exe.output_names == ("y", "pair_0", "pair_1_0", "pair_1_2_0")


def test_a_list_of_arrays_is_a_list_of_arguments() -> None:
    total = gk.jit(lambda xs: xs[0] + xs[1])
    assert (total([X, X]) == 2 * X).all()
    assert total([X, X]).shape == X.shape


def test_a_function_inside_of_another_is_part_of_it() -> None:
    outer = gk.jit(lambda x: scaled(x) * 2.0)
    assert (outer(X) == (X * 2 + 1) * 2).all()
    assert outer.executable(X).report.kernel_calls == 1
    assert (gk.jit(lambda x: Scaled(2.0)(x))(X) == X * 2 + 1).all()


def test_what_is_written_in_place_is_no_further_result() -> None:
    @gk.jit
    def step(w: Any, x: Any) -> Any:
        ops.assign(w, w + x)
        return ops.reduce_sum(x)

    w = np.zeros_like(X)
    assert step(w, X) == X.sum()
    assert (w == X).all()


def test_lengths_that_change_need_no_further_executable() -> None:
    kernel = np.arange(12, dtype=np.float32).reshape(3, 4)
    net = gk.jit(lambda x, w, y: ops.softmax(x @ w) + y, dynamic=True)
    for rows in (5, 7, 1, 9, 12, 7, 1, 3, 4):
        x = np.linspace(0, 1, rows * 3, dtype=np.float32).reshape(rows, 3)
        e = np.exp(x @ kernel)
        np.testing.assert_allclose(net(x, kernel, x[:, :1]), e / e.sum(1, keepdims=True) + x[:, :1], rtol=1e-5)
    assert sorted(types_of(net)) == ["f32[1, 3]", "f32[5, 3]", "f32[N0, 3]"]
    assert {str(exe.inputs["w"]) for exe in net.executables} == {"f32[3, 4]"}


def test_where_a_symbol_does_not_do_each_length_has_its_own() -> None:
    weighed = gk.jit(lambda x: x * (1.0 / x.shape[0]), dynamic=True)
    for rows in (2, 4, 8, 4):
        assert (weighed(np.ones((rows, 2), np.float32)) == 1 / rows).all()
    assert len(weighed.executables) == 3


def test_extents_that_were_equal_by_chance_may_differ() -> None:
    product = gk.jit(lambda x, w: x @ w, dynamic=True)
    for rows, columns in ((2, 3), (4, 4), (5, 4), (6, 6), (7, 9)):
        found = product(np.ones((rows, 2), np.float32), np.ones((2, columns), np.float32))
        assert found.shape == (rows, columns)
    assert len(product.executables) == 3


@pytest.mark.parametrize(("given", "message"), [
    (object(), "argument x: object is no array; give numpy.*; numbers, texts, None and types are taken as they are"),
    ({"a": [{1}]}, r"argument x\['a'\]\[0\]: set is no array"),
])  # fmt: skip
def test_what_is_no_argument_is_told(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("argument x", "argument 0")):
        scaled(given)


def test_levels_that_do_not_exist_are_refused() -> None:
    for wrong in (9, -1, True, "2", 1.5):
        level: Any = wrong
        with pytest.raises(
            OptionError, match=f"opt_level is {wrong!r}; 0 off, 1 basic fusion, 2 all stable passes, 3 more"
        ):
            gk.jit(lambda x: x, opt_level=level)
        with pytest.raises(OptionError, match="opt_level is"):
            gk.compile(gk.trace(lambda x: x, gk.spec(4)), level)
