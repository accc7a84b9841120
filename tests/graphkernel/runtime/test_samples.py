from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import InputError, OptionError
from graphkernel.runtime.inputs.samples import random_inputs, read_inputs, symbols_told, told

GRAPH = gk.trace(lambda x, mask: ops.select(mask, x, 0.0), gk.spec(("N", 4)), gk.spec(("N", 4), "bool"))


def test_random_inputs_fit_and_repeat() -> None:
    x, mask = random_inputs(GRAPH, {"N": 3}, seed=1)
    assert x.shape == mask.shape == (3, 4)
    assert (x.dtype, mask.dtype) == (np.float32, np.bool_)
    assert (random_inputs(GRAPH, {"N": 3}, seed=1)[0] == x).all()
    assert (random_inputs(GRAPH, {"N": 3}, seed=2)[0] != x).any()
    assert random_inputs(GRAPH)[0].shape == (8, 4)


def test_unknown_symbols_are_named() -> None:
    with pytest.raises(OptionError, match=r"no input has the symbol 'n' \(did you mean 'N'\?\); symbols: N"):
        random_inputs(GRAPH, {"n": 3})


def test_inputs_come_from_a_file_by_name(tmp_path: Path) -> None:
    x, mask = random_inputs(GRAPH)
    np.savez(tmp_path / "good.npz", mask=mask, x=x)
    np.savez(tmp_path / "bad.npz", x=x)
    assert all((a == b).all() for a, b in zip(read_inputs(GRAPH, tmp_path / "good.npz"), (x, mask), strict=True))
    other: Any = {"encoder.x": x}
    np.savez(tmp_path / "plain.npz", **other)
    model = gk.parse('graph g("/encoder/x": f32[N, 4]) { return "/encoder/x" }')
    assert (read_inputs(model, tmp_path / "plain.npz")[0] == x).all()
    with pytest.raises(InputError, match=r"bad.npz holds x; no array is called mask"):
        read_inputs(GRAPH, tmp_path / "bad.npz")


def test_integers_take_the_rows_of_their_tables() -> None:
    table, small = np.zeros((5000, 2), np.float32), np.zeros((3, 2), np.float32)

    def net(ids: Any, kinds: Any, mask: Any, pixels: Any) -> Any:
        words = ops.gather(table, ops.reshape(ids, shape=(-1,)), axis=0)
        return ops.add(words, ops.gather(small, ops.reshape(kinds, shape=(-1,)), axis=0)), mask, pixels

    graph = gk.trace(net, *[gk.spec((20, 10), "int64")] * 3, gk.spec((50, 50), "uint8"))
    ids, kinds, mask, pixels = random_inputs(graph)
    assert 1000 < ids.max() < 5000
    assert set(np.unique(kinds)) == {0, 1, 2}
    assert set(np.unique(mask)) == {0, 1}
    assert (mask[:, 0] == 1).all()
    assert (pixels.min() < 20, pixels.max() > 230) == (True, True)


def test_what_was_drawn_is_told() -> None:
    arrays = random_inputs(GRAPH, {"N": 3})
    assert symbols_told(GRAPH, arrays) == "N=3"
    first, second = told(GRAPH, arrays)
    assert first.startswith("x float32[3, 4]: -")
    assert second == "mask bool[3, 4]: False to True"


def test_integers_of_one_hot_vectors_take_all_their_places_and_images_have_sides() -> None:
    places = np.arange(257, dtype=np.int32)
    graph = gk.trace(lambda x, y: (ops.equal(x, places), y), gk.spec((40, 20, 1), "int32"), gk.spec(("N", 3, "H", "W")))
    words, image = random_inputs(graph)
    assert 200 < words.max() <= 256
    assert image.shape == (8, 3, 64, 64)
