"""What has no seeds draws anew: in every call, operator, thread and fork, after all passes; what has seeds never does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import in_forked_child
from onnx import helper
from onnx_models import model

import graphkernel as gk
from graphkernel import ops
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.ops.library.random import is_random, seeded
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.graph import Graph

X = np.ones((16, 32), np.float32)
TARGETS = ("cpu", "gpu", "ascend")
PROGRAMS: Mapping[str, Callable[[Tensor], Any]] = {
    "dropout": lambda x: (ops.dropout(x)[0], ops.dropout(x)[0]),
    "dropout of what is known": lambda x: (x + ops.dropout(x * 0.0 + 1.0)[0], ops.dropout(x * 0.0 + 1.0)[0]),
    "between kernels": lambda x: (
        ops.softmax(ops.dropout(ops.gelu(x))[0]), ops.softmax(ops.dropout(ops.gelu(x))[0]),
    ),
    "normal": lambda x: (x + ops.standard_normal(x.shape, ops.cast(x[0, 0], "int64")),
                         x + ops.standard_normal(x.shape, ops.cast(x[0, 0], "int64"))),
    "uniform": lambda x: (x * ops.uniform_real(x.shape, ops.cast(x[0, 0], "int64")),
                          x * ops.uniform_real(x.shape, ops.cast(x[0, 0], "int64"))),
}  # fmt: skip
EVERY = "--opt_level=3 --enable_cluster_ops=UniformReal,Dropout,StandardNormal --recompute_increment_threshold=1000000"


def program(name: str) -> Graph:
    return gk.trace(PROGRAMS[name], gk.spec(X.shape))


def all_differ(arrays: list[np.ndarray]) -> bool:
    return all((a != b).any() for i, a in enumerate(arrays) for b in arrays[:i])


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_calls_and_executables_draw_apart(name: str, level: int) -> None:
    graph = program(name)
    first, second = (gk.compile(graph, opt_level=level) for _ in range(2))
    assert all_differ([*first(X), *first(X), *second(X)])


@pytest.mark.parametrize("flags", ["--opt_level=1", "--opt_level=2", EVERY])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_pass_merges_copies_or_computes_what_draws(name: str, target: str, flags: str) -> None:
    graph = program(name)
    fused = gk.optimize(gk.optimize(graph, flags=flags, target=target), flags=flags, target=target)
    drawing = [node for node in fused.operators if is_random(node)]
    words = 2 if name == "normal" and any(node.op.name == "UniformReal" for node in drawing) else 1
    assert len(drawing) == 2 * words
    assert not any(node.body for node in drawing)
    assert all_differ([*gk.evaluate(fused, [X]), *gk.evaluate(fused, [X])])


def test_threads_and_forks_draw_apart(tmp_path: Path) -> None:
    executable = gk.compile(program("dropout"))
    executable(X)

    def saved(name: str) -> Callable[[], bool]:
        return lambda: np.save(tmp_path / name, executable(X)[0]) is None

    with ThreadPoolExecutor(4) as pool:
        drawn = [result[0] for result in pool.map(lambda _: executable(X), range(8))]
    assert [in_forked_child(saved(name)) for name in ("a", "b")] == [0, 0]
    assert all_differ([*drawn, executable(X)[0], *(np.load(tmp_path / f"{name}.npy") for name in ("a", "b"))])


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_has_seeds_draws_the_same_in_every_call_and_at_every_level(name: str) -> None:
    graph = seeded(program(name), 3)
    assert not any(map(is_random, graph.operators))
    want = gk.evaluate(graph, [X])
    assert seeded(graph, 4) == graph  # seeds that are given stay
    assert all_differ([*want, *gk.evaluate(seeded(program(name), 4), [X])])
    for level in range(4):
        executable = gk.compile(graph, opt_level=level)
        for _ in range(2):
            for got, expected in zip(executable(X), want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_known_mask_is_used_for_its_gradient() -> None:
    def both(x: Tensor) -> tuple[Any, Any]:
        y, mask = ops.dropout(x, keep_prob=0.5)
        return y, ops.dropout_grad(x, mask, keep_prob=0.5)

    y, gradient = gk.compile(gk.trace(both, gk.spec(X.shape)), opt_level=3)(X)
    np.testing.assert_array_equal(y, gradient)


NODES: Mapping[str, tuple[list[str], dict[str, Any], float, float]] = {
    "RandomNormal": ([], {"shape": X.shape, "mean": 2.0, "scale": 0.5}, 2.0, 0.5),
    "RandomNormalLike": (["x"], {"mean": -1.0}, -1.0, 1.0),
    "RandomUniform": ([], {"shape": X.shape, "low": -1.0, "high": 3.0}, 1.0, 4 / 12**0.5),
    "RandomUniformLike": (["x"], {"dtype": 11}, 0.5, 1 / 12**0.5),
    "Bernoulli": (["h"], {}, 0.25, 0.25 * 3**0.5),
    "Dropout": (["x", "r", "t"], {}, 1.0, 3**0.5),
}


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", NODES)
def test_operators_of_onnx_without_a_seed_draw_anew_and_as_they_should(name: str, level: int) -> None:
    operands, attributes, mean, deviation = NODES[name]
    nodes = [helper.make_node(name, operands, [result], **attributes) for result in ("y", "z")]
    constants = {"h": X / 4, "r": np.asarray(0.75, np.float32), "t": np.asarray(True)}
    given = model([helper.make_node("Neg", ["x"], ["n"]), *nodes], {"x": X}, ("y", "z", "n"), constants)
    executable = gk.compile(import_onnx(given), opt_level=level)
    drawn = [array for _ in range(3) for array in executable(X)[:2]]
    assert all_differ(drawn)
    numbers = np.concatenate(drawn).astype(np.float64)
    assert abs(numbers.mean() - mean) < 6 * deviation / numbers.size**0.5
    assert abs(numbers.std() / deviation - 1) < 0.1
    assert {array.dtype for array in drawn} == {np.dtype("float64" if "dtype" in attributes else "float32")}


def test_a_mask_that_is_wanted_says_what_was_kept() -> None:
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y", "m"])
    given = model([node], {"x": X}, ("y", "m"), {"r": np.asarray(0.5, np.float32), "t": np.asarray(True)})
    y, mask = gk.compile(import_onnx(given))(X)
    assert mask.dtype == np.bool_
    np.testing.assert_array_equal(y, np.where(mask, 2.0, 0.0))
    assert 0 < mask.mean() < 1
