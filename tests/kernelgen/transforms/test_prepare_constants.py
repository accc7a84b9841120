"""What constants alone decide is computed once: which arrays there are, what they hold, and that results stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from nests import I, J, block, buffer, call, loop, output
from operator_kernels import one

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.errors import ArgumentError, NestError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Alloc, Block, Call, Compare, Expr, If, Literal, Load, LoopKind, Nest, Num, Store
from kernelgen.nest.preparation import with_preparation
from kernelgen.nest.text import show
from kernelgen.nest.verify import verify as verify_nest
from kernelgen.nest.walk import statements, stored_buffers
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import FLOAT32, UINT8
from kernelgen.transforms.cpu.prepare_constants import prepare
from kernelgen.verify import Status, verify

F, H, B = "float32", "float16", "bfloat16"
LANES = 16

PRODUCTS = [
    one("MatMul", [(F, (40, 70)), (F, (70, 50))], [(F, (40, 50))]),
    one("MatMul", [(F, (37, 70)), (F, (96, 70))], [(F, (37, 96))], transpose_b=True),
    one("MatMul", [(F, (70, 40)), (F, (70, 64))], [(F, (40, 64))], transpose_a=True),
    one("MatMul", [(F, (1, 70)), (F, (70, 300))], [(F, (1, 300))]),
    one("MatMul", [(F, (3, 70)), (F, (70, 65))], [(F, (3, 65))]),
    one("MatMul", [(F, (sym("N"), 30)), (F, (30, 64))], [(F, (sym("N"), 64))]),
    one("MatMul", [(H, (40, 30)), (H, (30, 64))], [(H, (40, 64))]),
    one("MatMul", [(B, (17, 30)), (B, (64, 30))], [(B, (17, 64))], transpose_b=True),
    one("BatchMatMul", [(F, (2, 33, 20)), (F, (2, 20, 64))], [(F, (2, 33, 64))]),
    one("BatchMatMul", [(F, (5, 9, 20)), (F, (20, 33))], [(F, (5, 9, 33))]),
    one("MatMulInteger", [("int8", (2, 17, 5)), ("int8", (5, 3))], [("int32", (2, 17, 3))]),
]


def fused() -> KernelDesc:
    """A product with a bias and a function behind it."""
    w = Writer()
    a, b, c = tensor("a", 21, 30), tensor("b", 30, 70), tensor("c", 70)
    found = w.op("MatMul", a, b, shape=(21, 70))
    found = w.op("Add", found, c, shape=(21, 70))
    return w.desc("fused", (a, b, c), w.op("Tanh", found, shape=(21, 70)))


def turned() -> KernelDesc:
    """An elementwise kernel that reads a constant across the grain."""
    w = Writer()
    x, y = tensor("x", 48, 40), tensor("y", 40, 48)
    return w.desc("turned", (x, y), w.op("Add", x, w.op("Transpose", y, shape=(48, 40), perm=[1, 0]), shape=(48, 40)))


@pytest.mark.parametrize("desc", PRODUCTS, ids=lambda d: f"{d.name}{d.inputs[0].shape}")
def test_results_are_those_of_the_description_and_the_checker_finds_nothing(desc: KernelDesc) -> None:
    record = verify(desc, checked=True)
    assert (record.status, record.reason, record.message) == (Status.PASSED, "", "")
    assert record.weights == ("x1",)


@pytest.mark.parametrize("desc", [fused(), turned()], ids=lambda d: d.name)
def test_so_they_are_where_more_than_weights_is_constant(desc: KernelDesc) -> None:
    def all_constant(desc: KernelDesc, target: str, constants: tuple[int, ...] = ()) -> object:
        return compile(desc, target, constants=range(1, len(desc.inputs)))

    record = verify(desc, compiler=all_constant, checked=True)
    assert (record.status, record.reason, record.message) == (Status.PASSED, "", "")


@pytest.mark.parametrize("desc", [PRODUCTS[0], turned()], ids=lambda d: d.name)
def test_a_constant_that_is_laid_out_anew_is_no_argument_any_more(desc: KernelDesc) -> None:
    kernel = compile(desc, constants=[1])
    assert kernel.taken == (0,)
    assert kernel.prepares == (1,)
    assert desc.inputs[1].name not in {one.name for one in kernel.signature.inputs}
    assert compile(desc).taken == (0, 1)


@pytest.mark.parametrize("columns", [3, 9, 31, 40, 48])
def test_columns_beside_whole_vectors_are_summed_in_whole_ones_without_masks(columns: int) -> None:
    desc = one("MatMul", [(F, (24, 30)), (F, (30, columns))], [(F, (24, columns))])
    kernel = compile(desc, constants=[1])
    locals_ = {part.buffer.shape for part in statements(kernel.nest.body) if isinstance(part, Alloc)}
    widths = {size for shape in locals_ if len(shape) == 1 for size in shape if isinstance(size, int)}
    unit = kernel.plan.cpu.unit.lanes
    assert all(width % unit == 0 or (width & (width - 1) == 0 and width < unit) for width in widths)
    assert "@llvm.masked.load" not in kernel.source
    rng = np.random.default_rng(0)
    a, b = rng.random((24, 30), np.float32), rng.random((30, columns), np.float32)
    (array,) = kernel.prepare(b) if columns < unit else (np.zeros(1),)
    assert not array[..., columns:].any()
    np.testing.assert_allclose(kernel(*kernel.call_inputs([a, b]))[0], a @ b, rtol=1e-5)


def test_arrays_are_computed_once_for_calls_with_other_inputs() -> None:
    desc = PRODUCTS[0]
    kernel = compile(desc, constants=[1])
    rng = np.random.default_rng(0)
    b = rng.random((70, 50), np.float32)
    prepared = kernel.prepare(b)
    for _ in range(3):
        a = rng.random((40, 70), np.float32)
        (found,) = kernel(a, *prepared)
        np.testing.assert_allclose(found, a @ b, rtol=1e-5)


@pytest.mark.parametrize("position", [-1, 2])
def test_only_inputs_are_constant(position: int) -> None:
    with pytest.raises(ArgumentError, match="cannot be constant"):
        compile(PRODUCTS[0], constants=[position])


A, W, Y = buffer("a", 6, 8), buffer("w", 8, 6), output("y", 6, 8)


def case(value: Expr, guard: tuple[Compare, ...] = ()) -> Nest:
    """``y[i, j] = value``, perhaps under a guard."""
    store = Store(Y, (I, J), value)
    inner = loop(J, 8, If(guard, Block((store,))) if guard else store)
    return Nest("case", (), (A, W, Y), block(loop(I, 6, inner, kind=LoopKind.SERIAL)), constants=frozenset({"w"}))


TURNED = Load(W, (J, I))


def test_an_array_has_a_dim_for_each_loop_in_the_order_of_the_loops() -> None:
    nest = prepare(case(call("add", Load(A, (I, J)), TURNED)), LANES)
    verify_nest(nest)
    assert "input prepared0: f32[6, 8]" in show(nest)
    assert "y[i, j] = a[i, j] + prepared0[i, j]" in show(nest)
    assert nest.preparation is not None
    assert "w[c0_1, c0_0]" in show(nest.preparation)


def test_equal_values_share_an_array() -> None:
    nest = prepare(case(call("add", TURNED, call("mul", Load(A, (I, J)), TURNED))), LANES)
    assert nest.preparation is not None
    assert len(stored_buffers(nest.preparation.body)) == 1


def test_the_largest_value_that_constants_decide_is_the_one_that_is_kept() -> None:
    nest = prepare(case(call("mul", Load(A, (I, J)), call("tanh", TURNED))), LANES)
    assert "tanh" not in show(nest).split("nest case(")[1]


def test_what_is_made_of_narrow_numbers_reads_them_as_they_are_packed() -> None:
    narrow = Load(buffer("w", 8, 6, dtype=UINT8), (J, I))
    part = call("floor_mod", narrow, Literal(16, UINT8))
    values = [call("mul", Load(A, (I, J)), Call("cast", (each,), FLOAT32)) for each in (part, narrow)]
    nest = prepare(case(call("add", *values)), LANES)
    assert nest.preparation is not None
    assert {(b.dtype, b.shape) for b in nest.buffers if b.name.startswith("prepared")} == {(UINT8, (6, 8))}


@pytest.mark.parametrize(
    "nest",
    [
        case(call("add", Load(A, (I, J)), Load(buffer("w", 8, 6), (Num(0), Num(0))))),
        case(call("add", Load(A, (I, J)), TURNED), (Compare("<", I, Num(3)),)),
        case(Load(A, (I, J))),
    ],
    ids=["one element", "in a guard", "no constant"],
)
def test_nests_without_such_values_stay_as_they_are(nest: Nest) -> None:
    assert prepare(nest, LANES) is nest


def test_one_panel_of_columns_is_laid_out_though_it_lies_so() -> None:
    kernel = compile(one("MatMul", [(F, (24, 30)), (F, (30, 48))], [(F, (24, 48))]), constants=[1])
    assert kernel.prepares == (1,)
    (array,) = kernel.prepare(np.ones((30, 48), np.float32))
    assert array.ctypes.data % 64 == 0


def test_a_copy_as_it_lies_is_not_made() -> None:
    w = buffer("w", 6, 8)
    nest = case(call("add", Load(A, (I, J)), Load(w, (I, J))))
    assert prepare(nest, LANES) is nest


def test_an_array_much_larger_than_the_constant_is_not_made() -> None:
    w = buffer("w", 2, 2)
    nest = case(Load(w, (ix.modulo(I, Num(2)), ix.modulo(J, Num(2)))))
    assert prepare(nest, LANES) is nest


def test_a_preparation_that_reads_more_than_constants_is_no_nest() -> None:
    nest = prepare(case(call("add", Load(A, (I, J)), TURNED)), LANES)
    with pytest.raises(NestError, match="18"):
        verify_nest(Nest(nest.name, (), nest.buffers, nest.body, nest.argument_shapes, preparation=nest.preparation))


def test_both_nests_together_are_a_nest_of_the_first_inputs() -> None:
    before = case(call("add", Load(A, (I, J)), TURNED))
    nest = with_preparation(prepare(before, LANES), ("a", "w"))
    verify_nest(nest)
    assert [b.name for b in nest.buffers] == ["a", "w", "y", "prepared0"]
    assert with_preparation(before, ("a", "w")) is before
