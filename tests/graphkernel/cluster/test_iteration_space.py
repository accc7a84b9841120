import pytest

from graphkernel.cluster.iteration_space import reduction_space, space_of, spread
from graphkernel.frontends.trace import spec
from graphkernel.ops import OPS
from kernelgen.tensor.graph import Builder
from kernelgen.tensor.types import sym


@pytest.mark.parametrize(
    ("shape", "axis", "text"),
    [
        ((4, 8), (1,), "4 | *8"),
        ((2, 3, 8), (-1,), "6 | *8"),
        ((2, 3, 8), (1, 2), "2 | *24"),
        ((2, 3, 8), (1,), "2 | *3 | 8"),
        ((1, 8), (0,), "8"),
        ((4, 8), (), "*32"),
        (("B", "S", 8), (2,), "B*S | *8"),
    ],
)
def test_dims_fold_into_runs(shape, axis, text) -> None:
    builder = Builder()
    node = builder.emit(OPS["ReduceSum"], builder.parameter("x", spec(shape)), axis=axis).node
    assert str(reduction_space(node)) == text


def test_a_reshape_within_a_run_is_not_seen() -> None:
    batch, length = sym("B"), sym("S")
    assert space_of((batch, length, 8), {2}) == space_of((batch * length, 8), {1})
    assert space_of((4, 8), {1}) != space_of((8, 4), {1})


@pytest.mark.parametrize(
    ("operand", "result", "text"),
    [
        ((4, 8), (4, 8), None),
        ((8,), (1, 8), None),
        ((4, 1), (4, 8), "4 | *8"),
        ((8,), (4, 8), "*4 | 8"),
        ((), (4, 8), "*32"),
        ((1, 8), (4, 8), "*4 | 8"),
    ],
)
def test_a_broadcast_marks_the_dims_it_adds(operand, result, text) -> None:
    found = spread(spec(operand), spec(result))
    assert (None if found is None else str(found)) == text


def test_rows_and_columns() -> None:
    rows, columns = space_of((4, 8), {1}), space_of((4, 8), {0})
    assert (rows.kept, rows.total, rows.is_rowwise) == (4, 32, True)
    assert (columns.kept, columns.total, columns.is_rowwise) == (8, 32, False)
    assert space_of((4, 8), {0, 1}).is_rowwise
    assert space_of((4, 1), {1}).is_rowwise


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (((4, 8), {1}), ((4, 8), {0}), True),
        (((4, 8), {1}), ((2, 2, 8), {0, 1}), True),
        (((4, 8), {1}), ((8, 4), {0}), False),
        (((4, 8), {1}), ((4, 9), {0}), False),
        ((("N", 8), {1}), (("N", 8), {0}), True),
        (((4, 8), {0, 1}), ((4, 8), {0}), True),
    ],
)
def test_spaces_cross_when_they_mark_the_same_points_otherwise(left, right, same) -> None:
    def space(shape, marked):
        return space_of(tuple(sym(dim) if isinstance(dim, str) else dim for dim in shape), marked)

    assert space(*left).crosses(space(*right)) is space(*right).crosses(space(*left)) is same
