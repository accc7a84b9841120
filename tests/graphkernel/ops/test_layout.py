"""Layouts and padding: against numpy, there and back, in types."""

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.trace import spec, trace
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.types import sym

X = np.arange(2 * 32 * 3 * 5, dtype=np.float32).reshape(2, 32, 3, 5)


def test_fractal_nz_is_columns_of_blocks():
    matrix = np.arange(20 * 40, dtype=np.float32).reshape(20, 40)
    stored = ops.trans_data(matrix, "DefaultFormat", "FRACTAL_NZ")
    assert stored.shape == (3, 2, 16, 16)
    assert stored[2, 1, 3, 7] == matrix[16 + 3, 32 + 7]
    assert stored[2, 1, 4, 0] == 0
    assert stored.sum() == matrix.sum()
    np.testing.assert_array_equal(ops.trans_data(stored, "FRACTAL_NZ", "NCHW", (20, 40)), matrix)


def test_channel_blocks():
    blocked = ops.layout_transform(X, "NCHW", "NCHW16c")
    np.testing.assert_array_equal(blocked, X.reshape(2, 2, 16, 3, 5).transpose(0, 1, 3, 4, 2))
    eight = ops.layout_transform(blocked, "NCHW16c", "NCHW8c")
    np.testing.assert_array_equal(eight, X.reshape(2, 4, 8, 3, 5).transpose(0, 1, 3, 4, 2))
    np.testing.assert_array_equal(ops.layout_transform(eight, "NCHW8c", "NCHW"), X)


def test_orders_of_axes():
    np.testing.assert_array_equal(ops.layout_transform(X, "DefaultFormat", "NHWC"), X.transpose(0, 2, 3, 1))
    weight = X.reshape(32, 2, 3, 5)
    stored = ops.layout_transform(weight, "OIHW", "HWIO8o")
    np.testing.assert_array_equal(stored, weight.reshape(4, 8, 2, 3, 5).transpose(3, 4, 2, 0, 1))


def test_types_carry_the_layout():
    def there_and_back(x):
        blocked = ops.layout_transform(x, "NCHW", "NCHW16c")
        return ops.layout_transform(ops.neg(blocked), "NCHW16c", "NCHW")

    graph = trace(there_and_back, spec(("N", 32, 3, "M")))
    assert [str(node.types[0]) for node in graph.operators] == [
        "f32[N, 2, 3, M, 16]@NCHW16c", "f32[N, 2, 3, M, 16]@NCHW16c", "f32[N, 32, 3, M]",
    ]  # fmt: skip
    np.testing.assert_array_equal(evaluate(graph, [X])[0], -X)


def test_padding_and_its_removal():
    x = X[0, 0]
    padded = ops.pad_akg(x, (1, 0), (0, 2), 7.0)
    np.testing.assert_array_equal(padded, np.pad(x, ((1, 0), (0, 2)), constant_values=7))
    np.testing.assert_array_equal(ops.un_pad_akg(padded, (0, 2)), padded[:, :-2])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: ops.trans_data(x, "NCHW", "FRACTAL_NZ"), "the number of blocks of 16 in N is not known"),
        (lambda x: ops.trans_data(x, "NCHW", "NHWC"), "TransData is between DefaultFormat and FRACTAL_NZ"),
        (lambda x: ops.trans_data(ops.reshape(x, (-1,)), "NCHW", "FRACTAL_NZ"), "needs rank 2"),
        (lambda x: ops.layout_transform(x, "NCHW", "NCHW16c"), "axis C of extent 4 does not divide into blocks of 16"),
        (lambda x: ops.layout_transform(x, "NCHW", "NCHX"), "cannot store"),
        (lambda x: ops.layout_transform(x, "NCHW", "nchw"), "'nchw' is no layout"),
        (lambda x: ops.layout_transform(x, "NCHW", "NCH"), "cannot store"),
        (
            lambda x: ops.layout_transform(ops.layout_transform(x, "NCHW", "NHWC"), "CHWN", "NCHW"),
            "has the layout NHWC",
        ),
        (lambda x: ops.pad_akg(x, (0,), (0,)), "for each of the 4 axes"),
        (lambda x: ops.un_pad_akg(x, (0, 5, 0, 0)), "cannot drop"),
        (lambda x: ops.un_pad_akg(x, (0, 0, 2, 0)), "cannot drop"),
    ],
)
def test_misfits(function, message):
    with pytest.raises(TypeRuleError, match=message):
        trace(function, spec((2, 4, "N", 3)))


def test_symbolic_matrices_of_whole_blocks():
    graph = trace(lambda x: ops.trans_data(x, "NCHW", "FRACTAL_NZ"), spec((sym("N") * 16, 32)))
    assert str(graph.outputs[0].type) == "f32[2, N, 16, 16]@FRACTAL_NZ"
