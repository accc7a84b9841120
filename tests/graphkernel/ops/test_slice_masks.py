"""The masks of StridedSlice mean what the same index in brackets does."""

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.trace import spec, trace
from kernelgen.tensor.evaluation.evaluate import evaluate

X = np.arange(4 * 3 * 5, dtype=np.float32).reshape(4, 3, 5)
CASES = [
    ((1, 0), (3, 2), (1, 1), {"begin_mask": 2}, np.s_[1:3, :2]),
    ((1, 0), (3, 2), (2, 1), {"end_mask": 1}, np.s_[1::2, 0:2]),
    ((0, -1), (0, 0), (1, 1), {"ellipsis_mask": 1, "shrink_axis_mask": 2}, np.s_[..., -1]),
    ((0, 1, 0), (0, 3, 0), (1, 1, 1), {"new_axis_mask": 5, "begin_mask": 0}, np.s_[None, 1:3, None]),
    ((1, 0, -2), (0, 0, 9), (1, 1, 1), {"shrink_axis_mask": 1, "ellipsis_mask": 2}, np.s_[1, ..., -2:9]),
    ((-1, 0), (-5, 2), (-1, 1), {"end_mask": 0}, np.s_[-1:-5:-1, 0:2]),
    ((3, 0), (0, 2), (-1, 1), {"end_mask": 1, "new_axis_mask": 2}, np.s_[3::-1, None]),
    ((2,), (0,), (1,), {"new_axis_mask": 1, "ellipsis_mask": 1, "shrink_axis_mask": 1}, np.s_[...]),
]


@pytest.mark.parametrize(("begin", "end", "strides", "masks", "key"), CASES)
def test_masks(begin, end, strides, masks, key):
    np.testing.assert_array_equal(ops.strided_slice(X, begin, end, strides, **masks), X[key])
    graph = trace(lambda x: ops.strided_slice(x, begin, end, strides, **masks), spec(X.shape))
    np.testing.assert_array_equal(evaluate(graph, [X])[0], X[key])


def test_an_unknown_mask_is_refused():
    with pytest.raises(TypeRuleError, match="has no mask 'end_masks' \\(did you mean 'end_mask'"):
        ops.strided_slice(X, (0,), (1,), end_masks=1)
