"""Random operators: the generator is the published one, draws depend on seeds and step only, and look as they should."""

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops.library.counter_random import philox
from kernelgen.tensor.evaluation.evaluate import evaluate

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES,) * 4, (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)  # fmt: skip
def test_philox_gives_the_published_numbers(counter, key, expected):
    a, b, c, d = (np.asarray([word], np.uint64) for word in counter)
    assert tuple(int(word[0]) for word in philox((a, b, c, d), key)) == expected


def test_uniform_numbers():
    u = ops.uniform_real((400, 500), seed=1)
    assert u.dtype == np.float32
    assert 0 <= u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    assert abs(u.mean() - 0.5) < 3e-3
    assert np.bincount((u * 10).astype(int).ravel()).min() > 0.98 * u.size / 10


def test_normal_numbers():
    x = ops.standard_normal((400, 500), seed=1)
    assert np.isfinite(x).all()
    moments = [float((x**power).mean()) for power in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.05)
    assert abs(float(np.mean(x[:, 1:] * x[:, :-1]))) < 0.01


@pytest.mark.parametrize("draw", [ops.uniform_real, ops.standard_normal])
def test_a_draw_is_a_function_of_seeds_and_step(draw):
    first = draw((50,), np.asarray(3), seed=1, seed2=2)
    np.testing.assert_array_equal(first, draw((50,), np.asarray(3), seed=1, seed2=2))
    np.testing.assert_array_equal(draw((50,), seed=1), draw((50,), np.asarray(0), seed=1))
    others = [draw((50,), np.asarray(4), seed=1, seed2=2), draw((50,), np.asarray(3), seed=2, seed2=2)]
    assert not any(np.isin(first, other).any() for other in (*others, draw((50,), np.asarray(3), seed=1, seed2=3)))


def test_dropout_scales_what_it_keeps():
    x = np.ones((200, 300), np.float32)
    y, mask = ops.dropout(x, keep_prob=0.8, seed0=5)
    assert set(np.unique(mask)) == {0, 1}
    assert abs(mask.mean() - 0.8) < 5e-3
    np.testing.assert_allclose(y, mask / np.float32(0.8), rtol=1e-6)
    np.testing.assert_allclose(ops.dropout_grad(x, mask, keep_prob=0.8), y, rtol=1e-6)
    np.testing.assert_array_equal(ops.dropout(x, keep_prob=1.0)[0], x)


def test_steps_of_a_graph_with_seeds_draw_anew_and_the_same_again():
    graph = trace(lambda x, step: ops.dropout(x, step, keep_prob=0.5, seed0=7)[0], spec(("N", 8)), spec((), "int64"))
    x = np.ones((6, 8), np.float32)
    first, again, other = (evaluate(graph, [x, np.asarray(step)])[0] for step in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.dropout(np.ones(3, np.float32), keep_prob=0.0), r"keep_prob must be in \(0, 1\]"),
        (lambda: ops.dropout(np.ones(3, np.int32)), "expects floats"),
        (lambda: ops.uniform_real((2,), np.ones(2, np.int64)), "the step must be one integer"),
        (lambda: ops.uniform_real((2,), np.asarray(1), np.asarray(2)), "one step at most"),
        (lambda: ops.uniform_real((-2,)), "must not be negative"),
    ],
)
def test_misfits(call, message):
    with pytest.raises(TypeRuleError, match=message):
        call()
