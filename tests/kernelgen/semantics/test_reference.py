from dataclasses import replace
from typing import Any

import kernel_examples as examples
import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.composite.description import KernelDesc
from kernelgen.errors import ArgumentError, DescError, UnsupportedError
from kernelgen.semantics import reference
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT64, INT32
from kernelgen.tensor.types import TensorType


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def test_softmax():
    x = draw(6, 9)
    (found,) = reference(examples.softmax())(x)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_a_number_of_a_float64_tensor_is_a_tensor_of_rank_0():
    w, x = Writer(), tensor("x", 5, dtype=FLOAT64)
    first = w.op("StridedSlice", x, shape=(), begin=(1,), end=(2,), strides=(1,), shrink_axis_mask=1)
    (found,) = reference(w.desc("k", (x,), w.op("IsInf", first, shape=(), dtype=BOOL)))(
        np.asarray([1, np.inf, 2, 3, 4])
    )
    assert found.shape == ()
    assert found


def test_layer_norm():
    x, gamma, beta = draw(6, 10), draw(10, seed=1), draw(10, seed=2)
    (found,) = reference(examples.layer_norm())(x, gamma, beta)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma + beta
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_one_reference_serves_all_sizes():
    run = reference(examples.softmax(sym("R"), sym("C")))
    for shape in ((1, 1), (3, 7)):
        np.testing.assert_allclose(run(draw(*shape))[0].sum(1), 1, rtol=1e-6)


def test_updated_inputs_change_in_place_and_early_readers_see_the_old_value():
    p, m, g = (np.full(37, v, np.float32) for v in (1, 2, 3))
    second, old = reference(examples.momentum())(p, m, g)
    np.testing.assert_allclose(m, 0.9 * 2 + 3)
    np.testing.assert_allclose(p, 1 - 0.1 * m)
    np.testing.assert_array_equal(second, p)
    np.testing.assert_array_equal(old, 1)


def test_inplace_assign_gives_its_third_operand():
    w, d, s = Writer(), tensor("d", 4), tensor("s", 4)
    doubled = w.op("Mul", s, constant(2.0), shape=(4,))
    desc = w.desc("k", (d, s), w.op("InplaceAssign", d, s, doubled, shape=(4,), fake_output=False))
    target, source = np.zeros(4, np.float32), draw(4)
    (found,) = reference(desc)(target, source)
    np.testing.assert_array_equal(target, source)
    np.testing.assert_array_equal(found, 2 * source)


def test_inputs_can_change_places():
    x, y = np.zeros(7, np.float32), np.ones(7, np.float32)
    p = np.zeros((2, 3), np.float32)
    reference(examples.exchange())(x, y, p, np.full(1, 5, np.float32))
    assert (x == 1).all()
    assert (y == 0).all()
    assert (p == 5).all()


def test_an_operator_on_a_total_keeps_its_data_type():
    w, x = Writer(), tensor("x", 3, dtype=FLOAT64)
    total = w.op("ReduceSum", x, shape=(), axis=())
    (found,) = reference(w.desc("k", (x,), w.op("Atan", total, shape=())))(np.ones(3))
    np.testing.assert_allclose(found, np.arctan(3.0))


def test_surplus_ones_of_an_assigned_value_are_dropped():
    w, x, s = Writer(), tensor("x", 4), tensor("s", 1, 1)
    (found,) = reference(w.desc("k", (x, s), w.op("Assign", x, s, shape=(4,))))(draw(4), np.full((1, 1), 2, np.float32))
    np.testing.assert_array_equal(found, np.full(4, 2))


def test_half_sums_do_not_lose_terms():
    (found,) = reference(examples.half_sum(5, 3000))(np.ones((5, 3000), np.float16))
    np.testing.assert_array_equal(found, np.full((5, 1), 3000, np.float16))


def test_empty_reductions_give_the_neutral_element():
    np.testing.assert_array_equal(reference(examples.empty_sum())(np.ones((3, 0), np.float32))[0], np.zeros(3))


def test_results_can_be_written_to_given_arrays():
    x, y = draw(6, 9), np.empty((6, 9), np.float32)
    (found,) = reference(examples.softmax())(x, out=(y,))
    assert found is y
    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-6)


def test_outputs_do_not_share_memory_with_inputs():
    w, x = Writer(), tensor("x", 4)
    desc = w.desc("k", (x,), w.op("Reshape", x, shape=(2, 2)), x)
    given = draw(4)
    for found in reference(desc)(given):
        assert not np.shares_memory(found, given)


def test_bfloat16_rounds_once_per_operator():
    w, x = Writer(), tensor("x", 2, dtype=BFLOAT16)
    desc = w.desc("k", (x,), w.op("Exp", x, shape=(2,)))
    given = np.asarray([0.5, 1.0], BFLOAT16.numpy)
    (found,) = reference(desc)(given)
    np.testing.assert_array_equal(found, np.exp(given.astype(np.float32)).astype(BFLOAT16.numpy))


def test_casts_truncate_and_test_for_zero():
    w, x = Writer(), tensor("x", 3)
    desc = w.desc("k", (x,), w.op("Cast", x, shape=(3,), dtype=INT32), w.op("Cast", x, shape=(3,), dtype=BOOL))
    whole, truth = reference(desc)(np.asarray([-1.7, 0.0, 0.3], np.float32))
    assert whole.tolist() == [-1, 0, 0]
    assert truth.tolist() == [True, False, True]


def test_constants_broadcast_to_the_described_shape():
    w = Writer()
    desc = w.desc("k", (), w.op("BroadcastTo", constant(3.0), shape=(2, 2)))
    np.testing.assert_array_equal(reference(desc)()[0], np.full((2, 2), 3, np.float32))


def test_wrong_arguments_are_refused():
    run = reference(examples.softmax())
    with pytest.raises(ArgumentError, match="takes 1 arrays"):
        run()
    with pytest.raises(ArgumentError, match="expected float32"):
        run(np.ones((6, 9)))
    with pytest.raises(ArgumentError, match="expected \\[6, 9\\]"):
        run(np.ones((6, 8), np.float32))
    bare: Any = np.empty((6, 9), np.float32)
    for out in ((), bare):
        with pytest.raises(ArgumentError, match="a tuple of 1 arrays"):
            run(np.ones((6, 9), np.float32), out=out)
    fixed = np.ones(37, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ArgumentError, match="writeable"):
        reference(examples.momentum())(fixed, fixed, fixed)


def test_unknown_operators_are_refused():
    w, x = Writer(), tensor("x", 3)
    with pytest.raises(UnsupportedError, match="Sorcery"):
        reference(w.desc("k", (x,), w.op("Sorcery", x, shape=(3,))))(draw(3))


def test_a_result_that_contradicts_its_description_is_reported():
    w, x = Writer(), tensor("x", 8, dtype=FLOAT16)
    desc = w.desc("k", (x,), w.op("StridedSlice", x, shape=(3,), begin=(0,), end=(3,), strides=(1,)))
    longer = replace(desc.operators[0], types=(TensorType((5,), FLOAT16),))
    desc = KernelDesc(replace(desc.graph, outputs=(longer.out,)))
    with pytest.raises(DescError, match="described as \\[5\\]"):
        reference(desc)(np.ones(8, np.float16))


def test_an_operator_without_meaning_is_refused_before_the_first_call():
    w, x = Writer(), tensor("x", 4)
    with pytest.raises(UnsupportedError, match="'NoSuchOperator' has no meaning in numpy"):
        reference(w.desc("kernel", (x,), w.op("NoSuchOperator", x, shape=(4,))))
