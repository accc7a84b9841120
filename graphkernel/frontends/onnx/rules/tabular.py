"""What scikit-learn's pipelines are made of (``ai.onnx.ml``), as the operators it stands for: then a pipeline is a kernel.

Tables have a row for each sample and a column for each feature. Trees, texts and dictionaries have no rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, shape_of, static
from kernelgen.tensor.types import dtype

FLOAT, INDEX = dtype("float32"), dtype("int64")
AS_THEY_ARE = "NONE"


def _scores_as_they_are(scores: Operand) -> Operand:
    return scores


TRANSFORMS: Mapping[str, Callable[[Operand], Operand]] = {
    AS_THEY_ARE: _scores_as_they_are, "LOGISTIC": ops.sigmoid, "SOFTMAX": ops.softmax,
}  # fmt: skip
"""What becomes of scores, by the attribute post_transform."""


@onnx_op("ai.onnx.ml::Scaler")
def scaler(call: OnnxCall) -> Results:
    """(x - offset) * scale, whose float64 is rounded at the end."""
    x, own = call.operands[0], dtype(call.operands[0].dtype)
    offset, scale = (_columns(call, name, x) for name in ("offset", "scale"))
    if offset is None or scale is None:
        return Declined("an offset or a scale for other columns than there are")
    wide = own if own.name == "float64" else FLOAT
    moved = ops.sub(ops.cast(x, wide), offset.astype(wide.numpy))
    return ops.cast(ops.mul(moved, scale.astype(wide.numpy)), FLOAT)


@onnx_op("ai.onnx.ml::Normalizer")
def normalizer(call: OnnxCall) -> Results:
    """Rows of length 1; those of zeros stay as they are."""
    x, norm = ops.cast(call.operands[0], FLOAT), call.attribute("norm", "MAX")
    if len(shape_of(x)) != 2 or norm not in ("L1", "L2"):
        return Declined(f"the norm {norm} of {len(shape_of(x))} axes")
    if norm == "L1":
        length = ops.reduce_sum(ops.abs(x), axis=1, keep_dims=True)
    else:
        length = ops.sqrt(ops.reduce_sum(ops.mul(x, x), axis=1, keep_dims=True))
    return ops.div(x, ops.select(ops.equal(length, _float(0)), _float(1), length))


@onnx_op("ai.onnx.ml::Binarizer")
def binarizer(call: OnnxCall) -> Results:
    """1 where a value is above the threshold, else 0."""
    x = call.operands[0]
    if dtype(x.dtype) is not FLOAT:
        return Declined("values that are no float32")
    return ops.cast(ops.greater(x, _float(call.attribute("threshold", 0.0))), FLOAT)


@onnx_op("ai.onnx.ml::Imputer")
def imputer(call: OnnxCall) -> Results:
    """A value for what is missing, that of the column where there is more than one."""
    x = call.operands[0]
    if dtype(x.dtype) is not FLOAT:
        return Declined("values that are no float32")
    missing, filled = call.attribute("replaced_value_float", 0.0), _columns(call, "imputed_value_floats", x)
    if filled is None:
        return Declined("values for other columns than there are")
    found = ops.is_nan(x) if np.isnan(missing) else ops.equal(x, _float(missing))
    return ops.select(found, filled.astype(np.float32), x)


@onnx_op("ai.onnx.ml::ArrayFeatureExtractor")
def array_feature_extractor(call: OnnxCall) -> Results:
    """Columns by their indices; what has no rows is one."""
    x, wanted = call.operands
    longer = [axis for axis, extent in enumerate(shape_of(wanted)) if extent != 1]
    if not shape_of(x) or dtype(x.dtype).is_opaque or len(longer) > 1:
        return Declined("columns of texts, or by a table of indices")
    table = ops.expand_dims(x, 0) if len(shape_of(x)) == 1 else x
    count = shape_of(wanted)[longer[0]] if longer else 1
    return ops.gather(table, ops.reshape(wanted, (count,)), axis=len(shape_of(table)) - 1)


@onnx_op("ai.onnx.ml::FeatureVectorizer")
def feature_vectorizer(call: OnnxCall) -> Results:
    """Tables beside each other."""
    columns = static(shape_of(x)[-1] for x in call.operands if len(shape_of(x)) == 2)
    if columns is None or columns != tuple(call.attribute("inputdimensions", ())):
        return Declined("other columns than there are")
    return ops.concat([ops.cast(x, FLOAT) for x in call.operands], axis=1)


@onnx_op("ai.onnx.ml::OneHotEncoder")
def one_hot_encoder(call: OnnxCall) -> Results:
    """A row of zeros with a 1 at the category; zeros alone for what is none."""
    x, categories = call.operands[0], call.attribute("cats_int64s", ())
    if not len(categories) or not call.attribute("zeros", 1) or not dtype(x.dtype).is_integer:
        return Declined("categories that are no integers, or errors for values that are none")
    known = np.asarray(categories, INDEX.numpy)
    return ops.cast(ops.equal(ops.expand_dims(ops.cast(x, INDEX), len(shape_of(x))), known), FLOAT)


@onnx_op("ai.onnx.ml::LinearRegressor")
def linear_regressor(call: OnnxCall) -> Results:
    """x @ coefficients' + intercepts."""
    scores = _linear(call, call.attribute("targets", 1))
    return scores if isinstance(scores, Declined) else _transformed(call, scores)


@onnx_op("ai.onnx.ml::LinearClassifier")
def linear_classifier(call: OnnxCall) -> Results:
    """The class of the greatest score, and the scores."""
    labels = np.asarray(call.attribute("classlabels_ints", ()), INDEX.numpy)
    if len(labels) < 2 or len(call.attribute("intercepts", ())) != len(labels):
        return Declined("classes that are no integers, or without a score each")
    scores = _linear(call, len(labels))
    if isinstance(scores, Declined):
        return scores
    places = ops.argmax(scores, axis=1, output_type="int64")
    best = places if np.array_equal(labels, np.arange(len(labels))) else ops.gather(labels, places)
    shown = _transformed(call, scores)
    return shown if isinstance(shown, Declined) else (best, shown)


def _linear(call: OnnxCall, targets: int) -> Any:  # Tensor | Declined
    x, given = call.operands[0], np.asarray(call.attribute("coefficients", ()), np.float32)
    shape = shape_of(x)
    if dtype(x.dtype) is not FLOAT or len(shape) != 2 or shape[1] == 0 or given.size != targets * shape[1]:
        return Declined("no table of float32 with a column for each coefficient")
    product = ops.matmul(x, np.ascontiguousarray(given.reshape(targets, -1).T))
    added = np.asarray(call.attribute("intercepts", ()), np.float32)
    if added.size not in (0, targets):
        return Declined(f"{added.size} intercepts for {targets} results")
    return ops.add(product, added) if added.size else product


def _transformed(call: OnnxCall, scores: Operand) -> Any:  # Tensor | Declined
    wanted = call.attribute("post_transform", AS_THEY_ARE)
    return TRANSFORMS[wanted](scores) if wanted in TRANSFORMS else Declined(f"scores by {wanted}")


def _columns(call: OnnxCall, name: str, x: Operand) -> np.ndarray | None:
    """An attribute that holds a number for each column, or one for all; None where it holds others."""
    found = np.asarray(call.attribute(name, ()), np.float32)
    shape = shape_of(x)
    fits = found.size == 1 or (len(shape) == 2 and found.size > 0 and shape[1] == found.size)
    return found if fits and shape else None


def _float(value: float) -> np.ndarray:
    return np.asarray(value, np.float32)
