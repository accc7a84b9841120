"""The Python functions: what they record, what they compute at once, what they refuse."""

import inspect

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import FrontendError, TypeRuleError
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops.functions import written
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.types import sym

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


def lines(function, *specs) -> list[str]:
    """The statements that tracing a function gives, without the frame."""
    return [line.strip() for line in str(trace(function, *specs, name="g")).splitlines()[1:-2]]


def test_every_operator_is_a_function():
    for name, op in ops.OPS.items():
        assert callable(getattr(ops, ops.snake_case(name))), name
        assert op.doc or op.name
    names = {ops.snake_case(name) for name in ops.OPS}
    assert {
        "add",
        "reduce_sum",
        "relu",
        "silu",
        "fast_gelu",
        "matmul",
        "batch_matmul",
        "conv2d",
        "real_div",
        "acos",
    } <= names
    assert "add" in dir(ops)


def test_an_unknown_function_suggests_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'reduce_sum'"):
        ops.reduce_sun  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]  # the access itself raises


def test_operators_of_python_are_recorded():
    def formula(x, y):
        return -(2.0 / (x + y) ** 2.0 - x * y) % 3.0 // y

    assert [line.split(" = ")[1].split("(")[0] for line in lines(formula, spec(4), spec(4))] == [
        "Add", "Pow", "RealDiv", "Mul", "Sub", "Neg", "FloorMod", "FloorDiv",
    ]  # fmt: skip
    assert lines(lambda x: ops.select((x > 0.0) & ~(x >= 2), x, 1), spec(4)) == [
        "t0: bool[4] = Greater(x, 0.0)",
        "t1: bool[4] = GreaterEqual(x, 2.0)",
        "t2: bool[4] = LogicalNot(t1)",
        "t3: bool[4] = LogicalAnd(t0, t2)",
        "t4: f32[4] = Select(t3, x, 1.0:f32)",
    ]
    assert lines(lambda x, y: x @ y, spec((2, 3)), spec((3, 4)))[0].startswith("t0: f32[2, 4] = MatMul(x, y")
    assert "BatchMatMul" in lines(lambda x, y: x @ y, spec((5, 2, 3)), spec((3, 4)))[0]


def test_arrays_on_the_left_leave_the_operator_to_the_tensor():
    assert lines(lambda x: np.ones(3, np.float32) - x, spec((2, 3)))[1] == "t0: f32[2, 3] = Sub(c0, x)"


def test_axes_and_shapes_are_normalised():
    assert lines(lambda x: ops.reduce_sum(x, axis=-1), spec((2, 3))) == [
        "t0: f32[2] = ReduceSum(x, axis=(1,), keep_dims=False)"
    ]
    assert lines(lambda x: ops.reduce_max(x), spec((2, 3))) == [
        "t0: f32[] = ReduceMax(x, axis=(0, 1), keep_dims=False)"
    ]
    assert lines(lambda x: ops.reshape(x, (-1, 2)), spec(("N", 4))) == ["t0: f32[2*N, 2] = Reshape(x, shape=(2*N, 2))"]
    assert lines(lambda x: ops.broadcast_to(x, (5, -1, 4)), spec(("N", 1)))[0].startswith("t0: f32[5, N, 4]")
    assert lines(lambda x: ops.transpose(x), spec((2, 3, 4))) == ["t0: f32[4, 3, 2] = Transpose(x, perm=(2, 1, 0))"]
    assert lines(lambda x: ops.split(x, 2, axis=-1)[1], spec((2, 6)))[0].endswith(
        "Split(x, axis=1, size_splits=(3, 3))"
    )
    assert lines(lambda x: ops.squeeze(ops.expand_dims(x, -1)), spec(4))[1] == "t1: f32[4] = Squeeze(t0, axis=(1,))"


def test_slices_of_symbolic_extents_must_be_provable():
    tail = trace(lambda x: ops.strided_slice(x, (1, 0), (sym("N"), 2)), spec(("N", 4)))
    assert str(tail.outputs[0].type) == "f32[N - 1, 2]"
    with pytest.raises(TypeRuleError, match="may leave the symbolic extent N"):
        trace(lambda x: ops.strided_slice(x, (0, 0), (3, 2)), spec(("N", 4)))


@pytest.mark.parametrize(
    ("scalar", "of", "printed"),
    [(2, "float32", "2.0"), (2.5, "float16", "2.5"), (True, "bool", "True"), (3, "int8", "3"), (True, "int32", "1")],
)
def test_scalars_take_the_data_type_of_the_tensor(scalar, of, printed):
    assert lines(lambda x: ops.equal(x, scalar), spec(4, of)) == [f"t0: bool[4] = Equal(x, {printed})"]


@pytest.mark.parametrize(
    ("scalar", "of", "message"),
    [
        (2.0, "int32", "cast the tensor first"),
        (1, "bool", "cast the tensor first"),
        (300, "uint8", "out of range for uint8"),
    ],
)
def test_scalars_that_do_not_fit_are_refused(scalar, of, message):
    with pytest.raises(TypeRuleError, match=message):
        trace(lambda x: ops.equal(x, scalar), spec(4, of))


def test_numbers_and_lists_of_them_take_the_data_type_of_the_tensor():
    assert lines(lambda x: x + 1, spec(2, "float16")) == ["t0: f16[2] = Add(x, 1.0)"]
    assert lines(lambda x: ops.add(x, [1, 2]), spec(2, "float16"))[0] == "const c0: f16[2] = [1.0, 2.0]"
    assert lines(lambda x: x * np.sqrt(4.0), spec(2)) == ["t0: f32[2] = Mul(x, 2.0)"]
    with pytest.raises(TypeRuleError, match="out of range for int8"):
        trace(lambda x: ops.add(x, [1, 300]), spec(2, "int8"))


@pytest.mark.parametrize("array", [np.ones(2), np.ones(2, np.int64), np.ones(2, np.float16), np.int32(1)])
def test_arrays_keep_their_data_type(array):
    with pytest.raises(TypeRuleError, match="operands must have one data type, got f32 and"):
        trace(lambda x: x + array, spec(2))
    with pytest.raises(TypeRuleError, match="operands must have one data type, got f32 and"):
        ops.add(np.ones(2, np.float32), array)


def test_arrays_are_computed_at_once():
    assert np.array_equal(ops.add(ops.mul(ARRAY, 2.0), 1.0), ARRAY * 2 + 1)
    assert ops.add(ARRAY, 1.0).dtype == np.float32
    assert np.array_equal(ops.reduce_sum(ARRAY, axis=-1, keep_dims=True), ARRAY.sum(-1, keepdims=True))
    assert [part.shape for part in ops.split(ARRAY, (1, 2), axis=1)] == [(2, 1), (2, 2)]
    assert np.array_equal(ops.select(ARRAY > 2, ARRAY, 0.0), np.where(ARRAY > 2, ARRAY, 0))
    assert np.array_equal(ops.concat([ARRAY, ARRAY], axis=1), np.concatenate([ARRAY, ARRAY], 1))
    assert np.array_equal(ops.slice(ARRAY, (0, 1), (2, 2)), ARRAY[:, 1:])
    with pytest.raises(TypeRuleError, match="one data type"):
        ops.add(ARRAY, ARRAY.astype(np.float64))


def test_a_row_and_a_column_sum_do_not_lose_small_addends():
    x = np.array([1e8, 1.0, -1e8], np.float32)
    assert ops.reduce_sum(x) == np.float32(1.0)


def test_a_tensor_has_a_type_but_no_elements():
    def look(x):
        assert (x.shape, x.ndim, str(x.dtype), x.size, repr(x)) == (
            (sym("N"), 4),
            2,
            "f32",
            sym("N") * 4,
            "<Tensor f32[N, 4]>",
        )
        with pytest.raises(FrontendError, match=r"use ops\.select"):
            bool(x)
        return x

    trace(look, spec(("N", 4)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: ops.reshape(x, (5, -1)), r"cannot work out the -1"),
        (lambda x: ops.reshape(x, (5, 2)), r"Reshape\(f32\[3, 4\]\): cannot give 12 elements the shape \[5, 2\]"),
        (lambda x: ops.transpose(x, (0, 0)), "not a permutation"),
        (lambda x: ops.reduce_sum(x, axis=2), "axis 2 is out of range for rank 2"),
        (lambda x: ops.reduce_sum(x, axis=(0, -2)), "name one axis twice"),
        (lambda x: ops.broadcast_to(x, (3, 5)), r"\[3, 4\] and \[3, 5\] do not broadcast"),
        (lambda x: ops.concat([x, ops.reduce_sum(x)]), "may differ in axis 0 only"),
        (lambda x: ops.split(x, 5, axis=1), "does not split into 5 equal parts"),
        (lambda x: ops.split(x, (1, 1), axis=1), r"size_splits \(1, 1\) add up to 2"),
        (lambda x: ops.strided_slice(x, (0, 0), (4, 4)), "leaves the extent 3"),
        (lambda x: ops.pad(x, ((0, -1), (0, 0))), "must not be negative"),
        (lambda x: ops.matmul(x, x), "inner extents 4 and 3 must be equal"),
        (lambda x: ops.layer_norm(x, [1.0] * 3, [1.0] * 3), r"need the shape \[4\], got \[3\]"),
        (lambda x: ops.bias_add(x, [1.0] * 3), "bias must have the shape"),
        (lambda x: ops.gather(x, x), "expects integers, got f32"),
        (lambda x: ops.logical_and(x, x), "expects bool, got f32"),
        (lambda x: ops.sqrt(ops.cast(x, "int32")), "expects floats, got i32"),
        (lambda x: ops.cast(x, "float33"), "unknown data type 'float33'"),
        (lambda x: ops.cast(x, ","), "unknown data type ','"),
        (lambda x: ops.gelu(x, approximate="erf"), "must be 'none' or 'tanh'"),
        (lambda x: ops.select(x, x, x), "expects bool"),
    ],
)
def test_misfits_say_what_is_expected(function, message):
    with pytest.raises((TypeRuleError, ValueError), match=message):
        trace(function, spec((3, 4)))


def test_methods_of_tensors():
    def methods(x):
        return (
            x.reshape(-1, 2).T.sum(axis=0).astype("float16"),
            x.mean(-1, keep_dims=True),
            x.max(),
            x.min(0),
            x.transpose(1, 0),
        )

    graph = trace(methods, spec((2, 4)))
    assert [str(value.type) for value in graph.outputs] == ["f16[4]", "f32[2, 1]", "f32[]", "f32[4]", "f32[4, 2]"]


INDICES = [
    0, -1, slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(10, -1, -2), slice(3, 1), None, Ellipsis,
    (0, 1), (Ellipsis, 0), (slice(None), None, -2), (0, Ellipsis, None, slice(1, None)), (slice(-2, None), slice(0, -1), 2),
]  # fmt: skip


@pytest.mark.parametrize("key", INDICES, ids=str)
def test_basic_indexing_is_numpys(key):
    x = np.arange(4 * 3 * 5, dtype=np.float32).reshape(4, 3, 5)
    (found,) = evaluate(trace(lambda t: t[key], spec(x.shape)), [x])
    np.testing.assert_array_equal(found, x[key])


def test_indexing_of_symbolic_extents():
    graph = trace(lambda x: (x[1:], x[:-1], x[-1], x[:, 0], x[None]), spec(("N", 4)))
    types = [str(value.type) for value in graph.outputs]
    assert types == ["f32[N - 1, 4]", "f32[N - 1, 4]", "f32[4]", "f32[N]", "f32[1, N, 4]"]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for found, expected in zip(evaluate(graph, [x]), (x[1:], x[:-1], x[-1], x[:, 0], x[None]), strict=True):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(TypeRuleError, match="may leave the symbolic extent"):
        trace(lambda x: x[2:], spec(("N", 4)))
    with pytest.raises(TypeRuleError, match="3 entries for 2 axes"):
        trace(lambda x: x[0, 0, 0], spec((4, 4)))


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("softmax", "(x, axis: 'int | Sequence[int] | None' = -1)"),
        ("reduce_sum", "(x, axis: 'int | Sequence[int] | None' = None, keep_dims: 'bool' = False)"),
        ("layer_norm_ext", "(x, normalized_shape: 'Dim | Sequence[Dim]', gamma, beta, epsilon: 'float' = 1e-05)"),
        ("one_hot", "(indices, depth: 'Dim', on_value, off_value, axis: 'int' = -1)"),
        (
            "uniform_real",
            "(shape: 'Dim | Sequence[Dim]', *step, seed: 'int' = 0, seed2: 'int' = 0, word: 'Any' = None)",
        ),
        ("binary_cross_entropy", "(probabilities, labels, weight=None, reduction: 'str' = 'mean')"),
        ("add", "(x, y)"),
    ],
)
def test_help_shows_operands_attributes_and_defaults(name: str, called: str) -> None:
    function = getattr(ops, name)
    assert (function.__name__, str(inspect.signature(function))) == (name, called)


def test_every_function_can_be_called_as_its_signature_says() -> None:
    """Every attribute of an operator is a parameter, and operands are as many as it takes."""
    for name, op in ops.OPS.items():
        function = getattr(ops, ops.snake_case(name))
        if function.__module__ == written.__name__:
            continue
        parameters = inspect.signature(function).parameters
        attributes = {attribute.parameter or attribute.name for attribute in op.attributes}
        assert attributes <= parameters.keys(), name
        assert op.arity in (None, len(parameters.keys() - attributes)), name


def test_what_does_not_fit_a_function_is_told_with_its_signature() -> None:
    with pytest.raises(
        TypeRuleError, match=r"unexpected keyword argument 'axes' \(did you mean 'axis'\?\).*softmax\(x, axis"
    ):
        ops.softmax(ARRAY, axes=1)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeRuleError, match=r"missing a required argument: 'y'; it is called as add\(x, y\)"):
        ops.add(ARRAY)  # pyright: ignore[reportCallIssue]


def test_a_tensor_that_is_no_input_cannot_be_written_into() -> None:
    with pytest.raises(FrontendError, match="AssignAdd: operand 0 is written into, so only an input of the graph"):
        trace(lambda x: ops.assign_add(x * 2.0, x), spec(3))
    with pytest.raises(FrontendError, match="this is ndarray"):
        trace(lambda x: ops.assign(np.zeros(3, np.float32), x), spec(3))
