"""GroupQueryAttention with what is kept, rotary embeddings and lengths of their own computes what onnxruntime does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx

pytestmark = pytest.mark.usefixtures("shared_kernels")

HEADS, SHARED, SIZE = 4, 2, 16
Arrays = dict[str, np.ndarray]


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def made(
    rows: int, room: int, lengths: list[int], total: int, packed: bool, **attributes: Any
) -> tuple[ModelProto, Arrays]:
    """A model of one such node, and operands for it."""
    batch = len(lengths)
    if packed:
        given = {"q": drawn(batch, rows, (HEADS + 2 * SHARED) * SIZE)}
    else:
        given = {name: drawn(batch, rows, heads * SIZE) for name, heads in (("q", HEADS), ("k", SHARED), ("v", SHARED))}
    kept = {"past_k": drawn(batch, SHARED, room, SIZE), "past_v": drawn(batch, SHARED, room, SIZE) + 1}
    arrays = {**given, **kept, "lengths": np.array(lengths, np.int32)}
    constants = {"total": np.array(total, np.int32), "cosines": drawn(64, SIZE // 2), "sines": drawn(64, SIZE // 2) + 1}
    order = [*given, *(["", ""] if packed else []), *kept, "lengths", *constants]
    node = helper.make_node(
        "GroupQueryAttention", order, ["y", "k2", "v2"], domain="com.microsoft", num_heads=HEADS, kv_num_heads=SHARED,
        **attributes,
    )  # fmt: skip
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in arrays.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in ("y", "k2", "v2")]
    weights = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "net", infos, results, weights)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), arrays


CASES: Mapping[str, tuple[int, int, list[int], int, bool, dict[str, Any]]] = {
    "a token": (1, 8, [8], 9, False, {"do_rotary": 1}),
    "a token of two texts of unequal length": (1, 8, [8, 5], 9, False, {"do_rotary": 1}),
    "three tokens, in one operand": (3, 8, [10], 11, True, {"do_rotary": 1, "rotary_interleaved": 1}),
    "a text": (7, 0, [6], 7, False, {"do_rotary": 1}),
    "two texts, a window": (7, 0, [6, 6], 7, False, {"local_window_size": 3}),
    "room for more": (1, 16, [8], 9, False, {"do_rotary": 1}),
    "a bound on scores, a scale": (1, 8, [8], 9, False, {"softcap": 5.0, "scale": 0.5}),
}


@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.parametrize("name", CASES)
def test_results_and_what_is_kept_are_those_of_onnxruntime(name: str, opt_level: int) -> None:
    rows, room, lengths, total, packed, attributes = CASES[name]
    model, arrays = made(rows, room, lengths, total, packed, **attributes)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = [np.asarray(each) for each in session.run(None, arrays)]
    exe = gk.compile(gk.optimize(import_onnx(model), opt_level=opt_level))
    assert not any(node.op.name == "Onnx" for node in exe.graph.operators)
    for found, each in zip(exe(*(arrays[key] for key in exe.graph.input_names)), wanted, strict=True):
        assert (found.shape, found.dtype) == (each.shape, each.dtype)
        np.testing.assert_allclose(found, each, rtol=2e-5, atol=2e-5)


def test_a_text_shorter_than_its_operand_keeps_no_more_than_it_has() -> None:
    model, arrays = made(1, 8, [5], 9, False)
    exe = gk.compile(import_onnx(model))
    _, keys, _ = exe(*(arrays[key] for key in exe.graph.input_names))
    np.testing.assert_array_equal(keys[:, :, :5], arrays["past_k"][:, :, :5])
    np.testing.assert_array_equal(keys[:, :, 5], arrays["k"].reshape(1, SHARED, SIZE))
    assert not keys[:, :, 6:].any()


def test_queries_that_see_all_keys_are_left_to_onnxruntime() -> None:
    model, arrays = made(7, 0, [6, 6], 7, False, causal=0)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = np.asarray(session.run(None, arrays)[0])
    exe = gk.compile(import_onnx(model))
    assert [node.op.name for node in exe.graph.operators] == ["Onnx"]
    (found, *_) = exe(*(arrays[key] for key in exe.graph.input_names))
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
