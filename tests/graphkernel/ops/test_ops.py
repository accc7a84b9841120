"""Catalogue test: every operator's type rule agrees with its numpy meaning on shape and data type.

A new operator is tested by being declared; one whose operands are not like any family's needs a line in ``SPECIAL``.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from graphkernel.errors import TypeRuleError
from graphkernel.ir.opdef import OpDef
from graphkernel.ir.types import Attrs, TensorType, dtype
from graphkernel.ops import OPS

DTYPES = [dtype(name) for name in ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8", "bool")]

# Operand shapes and attributes of operators that are neither element-wise nor plain reductions.
SPECIAL: dict[str, list[tuple[list[tuple[int, ...]], dict[str, object]]]] = {
    "ArgmaxLike": [([(2, 3, 4)], {"axis": 1}), ([(5,)], {"axis": -1, "output_type": "int64"})],
    "Cast": [([(2, 3)], {"dst_type": d.name}) for d in DTYPES],
    "CumSum": [([(2, 3)], {"axis": 1}), ([(4,)], {"axis": -1, "exclusive": True, "reverse": True})],
    "Reshape": [([(2, 6)], {"shape": (3, 4)}), ([(1, 1)], {"shape": ()}), ([(0, 3)], {"shape": (3, 0)})],
    "ExpandDims": [([(2, 3)], {"axis": (0, -1)}), ([()], {"axis": 0})],
    "Squeeze": [([(1, 3, 1)], {"axis": (0,)}), ([(1, 3, 1)], {})],
    "Flatten": [([(2, 3, 4)], {"axis": axis}) for axis in (0, 1, 2, 3, -1)],
    "Transpose": [([(2, 3, 4)], {"perm": (2, 0, 1)}), ([()], {"perm": ()})],
    "BroadcastTo": [([(3, 1)], {"shape": (2, 3, 4)}), ([()], {"shape": (2,)})],
    "Tile": [([(2, 3)], {"multiples": (2, 1, 3)})],
    "Concat": [([(2, 3), (2, 1), (2, 0)], {"axis": 1})],
    "Split": [([(6, 2)], {"axis": 0, "size_splits": (1, 2, 3)})],
    "StridedSlice": [
        ([(6, 5)], {"begin": (1, 4), "end": (6, -1), "strides": (2, -1)}),
        ([(6,)], {"begin": (3,), "end": (2,), "strides": (1,)}),
    ],
    "Slice": [([(6, 5)], {"begin": (1, 0), "size": (2, 5)})],
    "Pad": [([(2, 3)], {"paddings": (1, 0, 0, 2), "value": 1.0})],
    "MatMul": [([(2, 3), (3, 4)], {}), ([(3, 2), (4, 3)], {"transpose_a": True, "transpose_b": True})],
    "BatchMatMul": [([(5, 1, 2, 3), (7, 3, 4)], {}), ([(2, 3, 2), (2, 4, 3)], {"transpose_a": True, "transpose_b": True})],
    "Softmax": [([(2, 3)], {"axis": (-1,)}), ([(2, 3, 4)], {"axis": (0, 2)})],
    "LogSoftmax": [([(2, 3)], {"axis": (-1,)})],
    "LayerNorm": [
        ([(2, 3, 4), (4,), (4,)], {"begin_norm_axis": -1, "begin_params_axis": -1, "epsilon": 1e-5}),
        ([(2, 3, 4), (3, 4), (3, 4)], {"begin_norm_axis": 1, "begin_params_axis": 1}),
    ],
    "RmsNorm": [([(2, 3, 4), (4,)], {"epsilon": 1e-6}), ([(2, 3, 4), (3, 4)], {})],
    "BiasAdd": [([(2, 3, 4, 5), (3,)], {}), ([(2, 3, 4, 5), (5,)], {"data_format": "NHWC"}), ([(2, 3), (3,)], {})],
    "BiasAddGrad": [([(2, 3, 4, 5)], {}), ([(2, 3, 4, 5)], {"data_format": "NHWC"}), ([(2, 3)], {}), ([(2, 3, 4)], {})],
    "BatchNorm": [([(2, 3, 4, 4), (3,), (3,), (3,), (3,)], {"epsilon": 1e-5})],
    "Conv2D": [
        ([(2, 4, 7, 6), (6, 2, 3, 2)], {"stride": (2, 1), "pad": (1, 0, 2, 1), "dilation": (2, 1), "group": 2}),
        ([(1, 3, 5, 5), (2, 3, 1, 1)], {}),
    ],
    "MaxPool": [([(1, 2, 7, 7)], {"kernel_size": (3, 2), "stride": (2, 3), "pad": (1, 1, 0, 1), "ceil_mode": True})],
    "AvgPool": [([(1, 2, 7, 7)], {"kernel_size": (3, 3), "stride": (2, 2), "pad": (1, 1, 1, 1), "count_include_pad": c})
                for c in (False, True)],
    "AssignAdd": [([(2, 3), (3,)], {})],
    "Assign": [([(2, 3), (2, 3)], {})],
    "AddN": [([(2, 3)] * 3, {}), ([(2,)], {})],
    "GeLUGrad": [([(2, 3), (2, 3)], {}), ([(2, 3), (2, 3), (2, 3)], {})],
}  # fmt: skip
SPECIAL["Argmax"] = SPECIAL["Argmin"] = SPECIAL.pop("ArgmaxLike")
OWN_TESTS = {"Gather", "OneHot", "Onnx", "Select"}  # operands of several data types
REDUCTION_CASES: list[tuple[list[tuple[int, ...]], dict[str, object]]] = [
    ([(2, 3, 4)], {"axis": (1,), "keep_dims": True}),
    ([(2, 3, 4)], {"axis": (-1, 0), "keep_dims": False}),
    ([(2, 3)], {"axis": ()}),
    ([()], {}),
]


def cases(op: OpDef) -> list[tuple[list[tuple[int, ...]], dict[str, object]]]:
    if op.name in SPECIAL:
        return SPECIAL[op.name]
    if "keep_dims" in op.attributes:
        return REDUCTION_CASES
    assert op.arity is not None, f"{op.name} needs a line in SPECIAL"
    return [
        ([(3, 1, 5)] * op.arity, {}),
        ([()] * op.arity, {}),
        ([(2, 0)] * op.arity, {}),
        ([(2, 1, 3), (4, 1)][: op.arity], {}),
    ]


def sample(shape: tuple[int, ...], of, seed: int) -> np.ndarray:
    """Positive and below 1, so that roots, logarithms and divisions are defined; integers from 1 on."""
    random = np.random.default_rng(seed)
    if of.is_float:
        return random.uniform(0.1, 0.9, shape).astype(of.numpy)
    return random.integers(0 if of.name == "bool" else 1, 2 if of.name == "bool" else 5, shape).astype(of.numpy)


def accepted(op: OpDef) -> Iterator[tuple[list[np.ndarray], Attrs, tuple[TensorType, ...]]]:
    for shapes, given in cases(op):
        attrs = Attrs.of(given)
        for of in DTYPES:
            arrays = [sample(shape, of, seed) for seed, shape in enumerate(shapes)]
            try:
                yield arrays, attrs, op.infer(tuple(TensorType(a.shape, of) for a in arrays), attrs)
            except TypeRuleError:
                continue


def results_of(op: OpDef, arrays: list[np.ndarray], attrs: Attrs) -> list[np.ndarray]:
    found = op.meaning(*arrays, attrs=attrs)
    return [np.asarray(result) for result in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", [name for name in OPS if name not in OWN_TESTS])
def test_the_type_rule_agrees_with_the_meaning(name):
    op = OPS[name]
    tried = 0
    for arrays, attrs, promised in accepted(op):
        tried += 1
        given = [(result.shape, result.dtype) for result in results_of(op, arrays, attrs)]
        assert given == [(t.shape, t.dtype.numpy) for t in promised], (arrays[0].dtype, attrs)
    assert tried, "no case is accepted"


@pytest.mark.parametrize("name", [n for n in OPS if n not in OWN_TESTS and n not in ("CumSum", "Onnx")])
def test_narrow_floats_compute_in_float32_and_round_once(name):
    op = OPS[name]
    for arrays, attrs, promised in accepted(op):
        if arrays[0].dtype != np.float16 or not all(type_.dtype.is_float for type_ in promised) or op.name == "Cast":
            continue
        narrow = results_of(op, arrays, attrs)
        wide = results_of(op, [array.astype(np.float32) for array in arrays], attrs)
        for short, long in zip(narrow, wide, strict=True):
            np.testing.assert_array_equal(short, long.astype(np.float16))


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if op.commutative])
def test_commutative_operators_commute(name):
    for arrays, attrs, _ in accepted(OPS[name]):
        x, y = arrays
        np.testing.assert_array_equal(results_of(OPS[name], [x, y], attrs), results_of(OPS[name], [y, x], attrs))


@pytest.mark.parametrize(("name", "arity"), [(n, op.arity) for n, op in OPS.items() if op.arity is not None])
def test_a_wrong_operand_count_and_an_unknown_attribute_are_refused(name: str, arity: int):
    x = TensorType((2, 3), dtype("f32"))
    with pytest.raises(TypeRuleError, match=rf"^{name}\(.*takes \d operands?, got {arity + 1}"):
        OPS[name].infer((x,) * (arity + 1), Attrs())
    with pytest.raises(TypeRuleError, match="has no attribute 'bogus'"):
        OPS[name].infer((x,) * arity, Attrs.of(bogus=1))


def test_there_are_the_sixty_primitives_and_more():
    assert len(OPS) > 100
    assert all(op.name == name for name, op in OPS.items())
    assert "Parameter" not in OPS
