import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_examples import Writer, tensor

from kernelgen.composite.document import Operation
from kernelgen.composite.shape_rules import expected_shapes, same_up_to_ones
from kernelgen.errors import TypeRuleError
from kernelgen.semantics import reference
from kernelgen.semantics.layout import from_fractal, to_fractal
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import FLOAT32, INT32
from kernelgen.tensor.operators.type_rules import broadcast_shapes

SHAPES = st.lists(st.sampled_from([0, 1, 1, 2, 3, 7]), max_size=4).map(tuple)


@given(SHAPES, SHAPES)
def test_broadcasting_is_that_of_numpy(left, right):
    try:
        expected = np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(TypeRuleError, match="do not broadcast"):
            broadcast_shapes((left, right))
    else:
        assert broadcast_shapes((left, right)) == expected


def test_equal_symbols_are_equal_extents():
    assert broadcast_shapes(((sym("N"), 1), (sym("N"), 4))) == (sym("N"), 4)
    with pytest.raises(TypeRuleError, match="do not broadcast"):
        broadcast_shapes(((sym("N"),), (sym("M"),)))


def test_shapes_may_differ_in_ones():
    assert same_up_to_ones((1, 3, 1, 4), (3, 4))
    assert not same_up_to_ones((3, 4), (4, 3))


@given(st.data())
def test_the_reference_agrees_with_the_rule_of_a_reduction(data):
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple))
    axes = data.draw(st.sets(st.integers(-len(shape), len(shape) - 1)).map(lambda s: tuple(sorted(s))))
    keep = data.draw(st.booleans())
    w, x = Writer(), tensor("x", *shape)
    w.op("ReduceSum", x, shape=(), axis=axes, keep_dims=keep)
    rule = expected_shapes(w.ops[0])
    assert rule is not None
    described = Writer()
    y = described.op("ReduceSum", x, shape=rule[0], axis=axes, keep_dims=keep)
    values = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)
    (found,) = reference(described.desc("k", (x,), y))(values)
    along = tuple({a % len(shape) for a in axes}) if axes else None
    np.testing.assert_array_equal(found, values.sum(along, keepdims=keep))


@given(st.integers(1, 40), st.integers(1, 40))
def test_blocks_hold_the_matrix_and_zeros(rows, columns):
    matrix = np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns)
    plain = from_fractal(to_fractal(matrix))
    np.testing.assert_array_equal(plain[:rows, :columns], matrix)
    assert plain.sum() == matrix.sum()


@pytest.mark.parametrize(("name", "shapes", "attrs", "expected"), [
    ("GatherNd", [(4, 5, 6), (3, 2)], {}, (3, 6)),
    ("TensorScatterAdd", [(4, 5), (3, 1), (3, 5)], {}, (4, 5)),
    ("Argmax", [(4, 5)], {"axis": -2}, (5,)),
    ("CSRMul", [(3,), (9,), (9,), (1, 5)], {"dense_shape": (2, 5)}, (9,)),
    ("CSRGather", [(3,), (9,), (2, 5, 7)], {"dense_shape": (2, 5)}, (9, 7)),
    ("CSRReduceSum", [(3,), (9,), (9,)], {"axis": 1}, (2, 1)),
    ("CSRMM", [(3,), (9,), (9,), (5, 4)], {"dense_shape": (2, 5)}, (2, 4)),
    ("CSR2COO", [(3,)], {"nnz": 9}, (9,)),
    ("COO2CSR", [(9,)], {"height": 4}, (5,)),
    ("Conv2D", [(1, 4, 9, 8), (6, 2, 3, 2)], {"stride": (1, 1, 2, 3), "dilation": (1, 1, 2, 1), "group": 2}, (1, 6, 3, 3)),
    ("Pool2D", [(1, 4, 9, 8)], {"kernel_size": (3, 3), "strides": (2, 2), "round_mode": "ceil"}, (1, 4, 4, 4)),
    ("Pool2D", [(1, 9, 8, 4)], {"global": True, "data_layout": "NHWC"}, (1, 1, 1, 4)),
    ("StandardNormal", [], {"shape": (2, 3)}, (2, 3)),
])  # fmt: skip
def test_shapes_of_wide_operators(name, shapes, attrs, expected):
    assert expected_shapes(operator(name, shapes, attrs)) == (expected,)


@pytest.mark.parametrize(("match", "name", "shapes", "attrs"), [
    ("too long for rank 1", "GatherNd", [(4,), (3, 2)], {}),
    ("updates need the shape", "TensorScatterAdd", [(4, 5), (3, 1), (3, 4)], {}),
    ("no extreme", "Argmin", [(4, 0)], {"axis": 1}),
    ("do not fit", "CSRMul", [(3,), (9,), (8,), (2, 5)], {"dense_shape": (2, 5)}),
    ("along axis", "CSRReduceSum", [(3,), (9,), (9,)], {"axis": 0}),
    ("channels", "Conv2D", [(1, 4, 9, 8), (6, 4, 3, 2)], {"group": 2}),
    ("does not fit into", "Conv2D", [(1, 2, 2, 8), (6, 2, 3, 2)], {"stride": (1, 1, 2, 2)}),
    ("does not fit into", "Pool2D", [(1, 2, 2, 8)], {"kernel_size": (5, 1), "strides": (1, 1)}),
    ("data_layout", "Pool2D", [(1, 2, 8)], {"global": True}),
])  # fmt: skip
def test_operands_that_do_not_fit(match, name, shapes, attrs):
    with pytest.raises((ValueError, TypeRuleError), match=match):
        expected_shapes(operator(name, shapes, attrs))


def operator(name, shapes, attrs):
    addresses = name in ("GatherNd", "TensorScatterAdd")
    inputs = tuple(tensor(f"x{k}", *s, dtype=INT32 if addresses and k == 1 else FLOAT32) for k, s in enumerate(shapes))
    return Operation(name, inputs, (tensor("y"),), Attrs.of(attrs))
