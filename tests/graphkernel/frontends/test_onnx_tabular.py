"""Operators of ``ai.onnx.ml`` that scikit-learn's pipelines are made of: against onnxruntime, in kernels of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx

ROWS, COLUMNS = 7, 5
DRAWN = np.random.default_rng(3)
X = DRAWN.standard_normal((ROWS, COLUMNS)).astype(np.float32)
X[2] = 0.0
WITH_GAPS = np.where(DRAWN.random((ROWS, COLUMNS)) < 0.3, np.float32(np.nan), X)
NUMBERS = DRAWN.integers(-3, 4, (ROWS, COLUMNS))
COEFFICIENTS = DRAWN.standard_normal(3 * COLUMNS).astype(np.float32).tolist()
INTERCEPTS = [0.5, -0.25, 0.125]

OURS: dict[str, tuple[str, np.ndarray, dict[str, Any]]] = {
    "scaler": ("Scaler", X, {"offset": [0.1, 0.2, 0.3, 0.4, 0.5], "scale": [1.0, 2.0, 3.0, 4.0, 5.0]}),
    "one scale": ("Scaler", X, {"offset": [0.25], "scale": [3.0]}),
    "scaled float64": ("Scaler", X.astype(np.float64), {"offset": [0.1], "scale": [3.3]}),
    "scaled integers": ("Scaler", NUMBERS, {"offset": [0.1] * COLUMNS, "scale": [1.5] * COLUMNS}),
    "length by sums": ("Normalizer", X, {"norm": "L1"}),
    "length by squares": ("Normalizer", X, {"norm": "L2"}),
    "binarizer": ("Binarizer", X, {"threshold": 0.2}),
    "gaps": ("Imputer", WITH_GAPS, {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0, 5.0], "replaced_value_float": np.nan}),
    "zeros as gaps": ("Imputer", X, {"imputed_value_floats": [9.0], "replaced_value_float": 0.0}),
    "one hot": ("OneHotEncoder", NUMBERS, {"cats_int64s": [-1, 0, 2]}),
    "regressor": ("LinearRegressor", X, {"coefficients": COEFFICIENTS[:COLUMNS], "intercepts": [0.5]}),
    "three targets": (
        "LinearRegressor", X, {"coefficients": COEFFICIENTS, "intercepts": INTERCEPTS, "targets": 3},
    ),
    "without intercepts": ("LinearRegressor", X, {"coefficients": COEFFICIENTS[:COLUMNS]}),
}  # fmt: skip
THEIRS: dict[str, tuple[str, np.ndarray, dict[str, Any]]] = {
    "greatest": ("Normalizer", np.abs(X) + 1, {"norm": "MAX"}),
    "integers as gaps": ("Imputer", NUMBERS, {"imputed_value_int64s": [9], "replaced_value_int64": 0}),
    "texts": ("OneHotEncoder", np.array([["a"], ["b"]], object), {"cats_strings": ["b", "c"]}),
    "one row": ("LinearRegressor", X[1], {"coefficients": COEFFICIENTS[:COLUMNS]}),
    "probit": (
        "LinearRegressor", np.full((2, 1), 0.3, np.float32), {"coefficients": [1.0], "post_transform": "PROBIT"},
    ),
}  # fmt: skip

TABULAR = {operator for operator, *_ in OURS.values()} | {
    "LinearClassifier",
    "ArrayFeatureExtractor",
    "FeatureVectorizer",
}


def model_of(operator: str, x: np.ndarray, attributes: dict[str, Any], results: tuple[int, ...]) -> onnx.ModelProto:
    """A model of one operator, whose results have these ONNX types; the number of rows is open."""
    given = TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    names = [f"y{place}" for place in range(len(results))]
    node = helper.make_node(operator, ["x"], names, domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", given, ["N", *x.shape[1:]])],
        [helper.make_tensor_value_info(name, of, None) for name, of in zip(names, results, strict=True)],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def compared(model: onnx.ModelProto, x: np.ndarray, level: int) -> gk.Executable:
    """The executable, whose results are onnxruntime's on all rows and on one."""
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    exe = gk.compile(import_onnx(model), level)
    for part in (x, x[:1]) if x.ndim > 1 else (x,):
        for found, want in zip(exe(part), session.run(None, {"x": part}), strict=True):
            assert found.dtype == want.dtype
            assert found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=2e-6, atol=1e-6)
    return exe


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("case", OURS)
def test_is_computed_as_onnxruntime_does(case: str, level: int):
    operator, x, attributes = OURS[case]
    exe = compared(model_of(operator, x, attributes, (TensorProto.FLOAT,)), x, level)
    assert level == 0 or (not exe.report.fallbacks and not exe.report.host), exe.report


@pytest.mark.parametrize("case", THEIRS)
def test_what_has_no_rule_stays_with_onnxruntime(case: str):
    operator, x, attributes = THEIRS[case]
    of = TensorProto.INT64 if case.startswith("integers") else TensorProto.FLOAT
    assert compared(model_of(operator, x, attributes, (of,)), x, 2).report.host


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [7, -2, 4]])
def test_classes_and_scores(transform: str, labels: list[int]):
    attributes: dict[str, Any] = {
        "coefficients": COEFFICIENTS, "intercepts": INTERCEPTS, "classlabels_ints": labels, "post_transform": transform,
    }  # fmt: skip
    model = model_of("LinearClassifier", X, attributes, (TensorProto.INT64, TensorProto.FLOAT))
    exe = compared(model, X, 2)
    assert not exe.report.host


def test_columns_by_their_indices_and_tables_beside_each_other():
    nodes = [
        helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["a"], domain="ai.onnx.ml"),
        helper.make_node("ArrayFeatureExtractor", ["x", "j"], ["b"], domain="ai.onnx.ml"),
        helper.make_node("FeatureVectorizer", ["b", "a"], ["y"], domain="ai.onnx.ml", inputdimensions=[3, 2]),
    ]
    constants = [
        helper.make_tensor("i", TensorProto.INT64, [2], [4, 0]),
        helper.make_tensor("j", TensorProto.INT64, [1, 3], [1, 2, 1]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", COLUMNS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants,
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    exe = compared(helper.make_model(graph, opset_imports=imports, ir_version=9), X, 2)
    assert not exe.report.host


def test_scores_of_classes_that_nobody_asks_for():
    """The scores of a classifier that is onnxruntime's, since its classes are texts, are read by a kernel."""
    attributes: dict[str, Any] = {
        "coefficients": COEFFICIENTS, "intercepts": INTERCEPTS, "classlabels_strings": ["a", "b", "c"],
    }  # fmt: skip
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **attributes),
        helper.make_node("Exp", ["scores"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", COLUMNS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    exe = compared(helper.make_model(graph, opset_imports=imports, ir_version=9), X, 2)
    assert not exe.report.fallbacks


def tree(operator: str, **attributes: Any) -> dict[str, Any]:
    """A stump on the second column, for two leaves."""
    kind = "class" if operator.endswith("Classifier") else "target"
    return {
        "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.25, 0.0, 0.0], "nodes_hitrates": [1.0] * 3,
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "nodes_missing_value_tracks_true": [0] * 3,
        f"{kind}_treeids": [0, 0], f"{kind}_nodeids": [1, 2], f"{kind}_ids": [0, 1], f"{kind}_weights": [0.5, 0.75],
        **attributes,
    }  # fmt: skip


def test_what_trees_give_has_a_shape():
    """So kernels take it: one reads the scores of trees, which stay with onnxruntime."""
    nodes = [
        helper.make_node(
            "TreeEnsembleClassifier", ["x"], ["a", "s"], domain="ai.onnx.ml",
            **tree("TreeEnsembleClassifier", classlabels_int64s=[3, 4]),
        ),
        helper.make_node(
            "TreeEnsembleRegressor", ["x"], ["t"], domain="ai.onnx.ml", **tree("TreeEnsembleRegressor", n_targets=2)
        ),
        helper.make_node("Mul", ["s", "t"], ["m"]),
        helper.make_node("Exp", ["m"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", COLUMNS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None), helper.make_tensor_value_info("a", 7, None)],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    exe = compared(helper.make_model(graph, opset_imports=imports, ir_version=9), X, 2)
    assert exe.outputs["y"].shape == (*exe.inputs["x"].shape[:1], 2)
    assert exe.report.kernel_calls == 1
