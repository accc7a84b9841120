"""The nets of MindSpore's own graph kernel tests (``tests/st/graph_kernel``), rebuilt: same numbers, and how many kernels.

The ancestor's tests run a net with the feature off and on and compare. Here every net runs at every level and target;
``KERNELS`` pins what level 2 makes of it on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.frontends.trace import spec, trace
from graphkernel.options import Options
from graphkernel.passes.base import run_steps
from graphkernel.pipeline import steps_for
from graphkernel.step_hooks import SameNumbers, Verify
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType

Net = Callable[..., Any]
Case = tuple[
    Net, Sequence[TensorType], str, int
]  # function, operands, flags, kernels and operators at level 2 on the CPU


def fuse(x: Any, y: Any) -> Any:
    """test_fuse"""
    shifted = x - y
    scaled = shifted * 2.0
    total = ops.square(scaled) + x
    return total + ops.square(ops.sqrt_grad(ops.sqrt(ops.abs(total) + 1.0), y)) + 3.0


def recompute_cast(x: Any) -> Any:
    """test_recompute, Net1: one Cast, two sums."""
    wide = ops.cast(x, "float32")
    return ops.reduce_sum(wide, axis=1), ops.reduce_sum(wide, axis=0)


def recompute_broadcast(x: Any, y: Any) -> Any:
    """test_recompute, Net4: a cheap value in front of a sum and a broadcast."""
    root = ops.sqrt(ops.abs(x) + 1.0)
    return ops.reduce_sum(-root + y, axis=0), root + y


def atomic_add(x: Any, y: Any) -> Any:
    """test_atomic_add, Net1: a sum of everything beside element-wise work."""
    product = (x + y) * y
    return ops.reduce_sum(product), product


def layer_norm_stitch(x: Any, bias: Any, residual: Any, gamma: Any, beta: Any) -> Any:
    """test_layernorm_stitch without the random dropout."""
    return ops.layer_norm(x + bias + residual, gamma, beta, begin_norm_axis=1, begin_params_axis=1)


def dropout_grad_reduce(dy: Any, mask: Any) -> Any:
    """test_dropoutgrad_reducesum_stitch"""
    back = ops.dropout_grad(dy, mask, keep_prob=0.9)
    return back, ops.reduce_sum(back, axis=(0, 1))


def seven_updates(*tensors: Any) -> Any:
    """test_parallel_fusion: seven AdamWeightDecay."""

    def update(var: Any, m: Any, v: Any, gradient: Any) -> Any:
        return ops.adam_weight_decay(var, m, v, 0.01, 0.9, 0.999, 1e-8, 0.01, gradient)

    found = [update(*tensors[4 * k : 4 * k + 4]) for k in range(7)]
    return tuple(var for var, _, _ in found)


def common(x: Any) -> Any:
    """test_cse: x * x and Square(x)."""
    return x * x + ops.square(x)


def optimize_assign(target: Any, x: Any, y: Any) -> Any:
    """test_optimize_assign: the value that is assigned is used as well."""
    value = x + y
    ops.assign(target, value)
    return ops.reduce_sum(value * 2.0, axis=0)


def low_precision(x: Any, y: Any) -> Any:
    """test_low_precision: float32 between a product and its users."""
    return ops.exp(ops.matmul(x + 1.0, y) * 0.1)


def matmul_to_mul(column: Any, row: Any) -> Any:
    """test_matmul_to_mul: an inner extent of 1."""
    return ops.matmul(column, row) + 1.0


def cast_matmul(x: Any, y: Any, bias: Any) -> Any:
    """test_cast_matmul_fusion: a bias in float32 that a product in float16 casts."""
    return ops.matmul(x, y) + ops.cast(bias, "float16")


def matmul_combine(x: Any, left: Any, right: Any) -> Any:
    """test_matmul_combine: two products of one operand."""
    return ops.matmul(x, left), ops.matmul(x, right)


def dvm_complex_net(x: Any, y: Any) -> Any:
    """test_dvm, ComplexNet: broadcasts, a gelu, a sum, a select, and whether all is finite."""
    activated = ops.gelu(ops.add_ext(x, y, alpha=2.0))
    total = ops.reduce_sum(activated, axis=(0,), keep_dims=True)
    chosen = ops.select(activated > total, activated, total)
    return chosen, ops.cast(ops.is_finite(chosen), "float32")


def dvm_transpose(x: Any) -> Any:
    """test_dvm: transposes by (1, 0, 2) and (0, 2, 1)."""
    return ops.transpose(ops.exp(x), perm=(1, 0, 2)) + 1.0, ops.transpose(x, perm=(0, 2, 1)) * 2.0


def dvm_bool(x: Any, y: Any) -> Any:
    """test_dvm: logic on bools."""
    return ops.logical_or(ops.logical_and(x, y), ops.logical_not(y))


def dvm_pow(x: Any, y: Any) -> Any:
    """test_dvm: 10000 to a quotient."""
    return ops.pow(10000.0, 2.0 * y / x)


def dvm_hsigmoid(x: Any) -> Any:
    """test_dvm: seven dims."""
    return ops.hsigmoid(x)


def easy_cpu(x: Any, y: Any) -> Any:
    """test_easy_fuse_cpu"""
    return ops.exp(ops.abs(x * y)) - ops.minimum(x, y)


def lamb(m: Any, v: Any, var: Any, gradient: Any, w_norm: Any, g_norm: Any) -> Any:
    """test_lamb: the update, and the weight with its trust ratio."""
    scalars = [ops.reshape(w_norm, ()) * 0.0 + number for number in (0.999, 0.001, 0.9, 0.1, 1e-6, 7.0, 0.01, 1.0)]
    square, one_minus_b1 = ops.square(gradient), scalars[3]
    m_next = scalars[2] * m + one_minus_b1 * gradient
    v_next = scalars[0] * v + scalars[1] * square
    update = m_next / (ops.sqrt(v_next) + 1e-6) + 0.01 * var
    ops.assign(m, m_next)
    ops.assign(v, v_next)
    return ops.lamb_apply_weight_assign(w_norm, g_norm, ops.reshape(w_norm, ()) * 0.0 + 0.01, update, var)


def complex_parts(x: Any, y: Any) -> Any:
    """test_complex_for_gk: (x + iy)(x + iy), its parts."""
    number = ops.complex(x, y)
    square = ops.cmul(number, number)
    return ops.creal(square), ops.cimag(square)


F = spec
ADAM = [spec((2, 2))] * 28
CASES: dict[str, Case] = {
    "fuse": (fuse, [F((2, 3, 4, 3))] * 2, "", 1),
    "recompute_cast": (recompute_cast, [F((1024, 1024), "float16")], "", 1),
    "recompute_broadcast": (recompute_broadcast, [F((1, 1024)), F((1024, 1024))], "", 1),
    "atomic_add": (atomic_add, [F((2, 3, 4, 3))] * 2, "", 1),
    "atomic_add_rows": (atomic_add, [F((2, 2, 2, 256))] * 2, "", 1),
    "layer_norm_stitch": (
        layer_norm_stitch,
        [F((8192, 768)), F((1, 768)), F((8192, 768)), F((768,)), F((768,))],
        "",
        1,
    ),
    "dropout_grad_reduce": (dropout_grad_reduce, [F((64, 128, 768))] * 2, "", 1),
    "seven_updates": (seven_updates, ADAM, "", 7),
    "seven_updates_in_parallel": (seven_updates, ADAM, "--opt_level=3 --target=gpu", 1),
    "cse": (common, [F((4, 8))], "", 1),
    "optimize_assign": (optimize_assign, [F((64, 64))] * 3, "", 1),
    "low_precision": (low_precision, [F((32, 64)), F((64, 32))], "", 2),
    "tensor_inplace": (easy_cpu, [F((64, 64))] * 2, "--enable_auto_tensor_inplace=true", 1),
    "matmul_to_mul": (matmul_to_mul, [F((64, 1)), F((1, 32))], "--enable_expand_ops=MatMul", 1),
    "cast_matmul": (cast_matmul, [F((32, 64), "float16"), F((64, 16), "float16"), F((16,))], "", 2),
    "matmul_combine": (matmul_combine, [F((32, 64)), F((64, 16)), F((64, 24))], "--enable_parallel_op_combine=true", 2),
    "dvm_complex_net": (dvm_complex_net, [F((32, 1024)), F((1, 1024))], "", 1),
    "dvm_complex_net_broadcast": (dvm_complex_net, [F((1, 32, 1)), F((256, 1, 64))], "", 2),
    "dvm_complex_net_dynamic": (dvm_complex_net, [F(("M", "N")), F((1, "N"))], "", 2),
    "dvm_transpose": (dvm_transpose, [F((16, 32, 16))], "", 2),
    "dvm_bool": (dvm_bool, [F((32, 32), "bool")] * 2, "", 1),
    "dvm_pow": (dvm_pow, [F((32, 32))] * 2, "", 1),
    "dvm_hsigmoid": (dvm_hsigmoid, [F((2, 3, 2, 3, 2, 3, 2))], "", 1),
    "easy_cpu": (easy_cpu, [F((4, 6))] * 2, "", 1),
    "lamb": (lamb, [*[F((16, 32))] * 4, F((1,)), F((1,))], "", 1),
    "complex": (complex_parts, [F((16, 32))] * 2, "", 1),
}


def graph_of(name: str) -> Graph:
    """The net as its operands' types give it."""
    function, operands, _, _ = CASES[name]
    return trace(function, *operands, name=name)


def arrays_for(graph: Graph) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    found: list[np.ndarray] = []
    for value in graph.inputs:
        shape = tuple(extent if isinstance(extent, int) else 12 for extent in value.type.shape)
        drawn = rng.uniform(0.5, 1.5, shape)
        found.append((drawn > 1 if value.type.dtype.name == "bool" else drawn).astype(value.type.dtype.numpy))
    return found


def optimized(graph: Graph, flags: str, *hooks: Any) -> Graph:
    options = Options.parse(flags)
    return run_steps(graph, steps_for(options), builtin_catalogue().context(options), (Verify(), *hooks))


def small(name: str) -> bool:
    """Whether numpy computes the case in no time; the others belong to the benchmark."""
    extents = [[d for d in value.type.shape if isinstance(d, int)] for value in graph_of(name).inputs]
    return max(map(math.prod, extents)) <= 1 << 21


def targets(name: str) -> tuple[str, ...]:
    """Results over operands are not for ascend, and a flag that asks for them there is refused."""
    return ("cpu", "gpu") if "inplace" in CASES[name][2] else ("cpu", "gpu", "ascend")


@pytest.mark.parametrize(("name", "target"), [(each, on) for each in CASES if small(each) for on in targets(each)])
def test_the_same_numbers(name: str, target: str) -> None:
    graph = graph_of(name)
    same = SameNumbers(arrays_for(graph), 1e-4, 1e-4)
    for level in (1, 2, 3):
        flags = f"{CASES[name][2]} --target={target}" if "--target" not in CASES[name][2] else CASES[name][2]
        optimized(
            graph, f"--opt_level={level} {flags}".replace(f"--opt_level={level} --opt_level", "--opt_level"), same
        )


@pytest.mark.parametrize("name", CASES)
def test_launches(name: str) -> None:
    after = optimized(graph_of(name), CASES[name][2])
    launches = [node.body.name if node.body else node.op.name for node in after.operators if node.op.name != "Reshape"]
    assert len(launches) == CASES[name][3], launches
