"""What the graph assigns to an input is stored there by its kernel, and everybody else reads the input as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
import kernelgen
from graphkernel import ops
from graphkernel.cluster.own_products import prepared_operands
from graphkernel.errors import VerifyError
from graphkernel.handoff import to_desc
from graphkernel.ops import Tensor
from graphkernel.passes.effects.assign_in_place import assign_in_place
from graphkernel.runtime.plan import plan as planning
from graphkernel.runtime.plan.verify_plan import verify_plan
from graphkernel.runtime.steps.steps import KernelStep, Step
from kernelgen.errors import GraphKernelError
from kernelgen.tensor.graph import Graph

Array = np.ndarray[Any, Any]
SIDE = 64
SQUARE = gk.spec((SIDE, SIDE))


def updated(w: Tensor, g: Tensor) -> Tensor:
    return ops.assign(w, w - 0.5 * g)


def written_first(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """The update stands before a product that reads the weight."""
    new = updated(w, ops.matmul(x, y, transpose_a=True))
    return new, ops.matmul(y, w, transpose_b=True)


def old_and_new(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """A product of the new weight with the old one: neither may come first."""
    new = updated(w, ops.matmul(x, y, transpose_a=True))
    return new, ops.matmul(ops.matmul(x, new), w)


def old_returned(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return updated(w, ops.matmul(x, y)), w


def old_as_a_view(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    flat = ops.reshape(w, (SIDE // 2, 2 * SIDE))
    return updated(w, ops.matmul(x, y)), ops.matmul(ops.reshape(y, (SIDE // 2, 2 * SIDE)), flat, transpose_b=True)


def read_unevenly(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """One kernel could hold all of it, and reads other elements of the weight than it writes."""
    return (ops.assign(w, ops.transpose(w, (1, 0)) + x * y),)


def not_read(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return (ops.assign(w, ops.exp(x) * y),)


def swapped(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return ops.assign(w, x + 0.0), ops.assign(x, w + 0.0), ops.matmul(w, y)


def rotated(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Inputs themselves, without a kernel in between."""
    return ops.assign(w, x), ops.assign(x, y), ops.assign(y, w)


def both_moments(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    g = ops.matmul(x, x, transpose_a=True)
    first, second = ops.assign(x, 0.9 * x + 0.1 * g), ops.assign(y, 0.9 * y + 0.1 * g * g)
    return ops.assign(w, w - first / (ops.sqrt(ops.abs(second)) + 1.0)), ops.reduce_sum(w)


def crossed(w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Each is updated with what the other one was."""
    old = 2.0 * x
    return ops.assign(x, x - 3.0 * w + ops.matmul(y, y)), ops.assign(w, w + old), ops.assign(y, ops.exp(-old) * y)


PROGRAMS = (
    written_first, old_and_new, old_returned, old_as_a_view, read_unevenly, not_read, swapped, rotated, both_moments, crossed
)  # fmt: skip
IN_PLACE = {"written_first": 1, "not_read": 1, "both_moments": 2}
"""How many results need no copy anywhere; the third of the last one is a factor of the product in its kernel."""


def arrays() -> list[Array]:
    random = np.random.default_rng(5)
    return [random.standard_normal((SIDE, SIDE)).astype(np.float32) for _ in range(3)]


def holds(graph: Graph, executable: gk.Executable) -> bool:
    """Whether results, and what inputs are afterwards, are those of the graph's meaning, in three calls."""
    inputs = arrays()
    for _ in range(3):
        wanted = gk.evaluate(graph, [array.copy() for array in inputs])
        results = executable(*inputs)
        for number, (got, want) in enumerate(zip(results, wanted, strict=True)):
            if not np.allclose(got, want, rtol=1e-4, atol=1e-4):
                return False
            assert all(got is inputs[alias.input] for alias in graph.aliases if alias.output == number)
        inputs = [array / max(1.0, float(np.abs(array).max())) for array in inputs]
    return True


def stored_at_once(executable: gk.Executable) -> int:
    steps = (step for step in executable.plan.steps if isinstance(step, KernelStep))
    return sum(position not in step.private for step in steps for _, position in step.stored)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_old_content_is_read_before_it_is_written_over(program: Callable[..., Any]) -> None:
    graph = gk.trace(program, SQUARE, SQUARE, SQUARE)
    for level in (0, 2):
        assert holds(graph, gk.compile(graph, opt_level=level))
    if program.__name__ in IN_PLACE:
        assert stored_at_once(gk.compile(graph)) == IN_PLACE[program.__name__]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_plan_copies_where_writers_do_not_come_late(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "with_late_writes", lambda steps, inputs: steps)
    graph = gk.trace(program, SQUARE, SQUARE, SQUARE)
    assert holds(graph, gk.compile(graph))


def test_writers_that_nobody_makes_wait_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that takes every kernel's word for it writes over what is read later, and the check sees it."""

    def unprotected(graph: Graph, steps: Sequence[Step], slots: object) -> tuple[Step, ...]:
        return tuple(step._replace(private=frozenset()) if isinstance(step, KernelStep) else step for step in steps)

    monkeypatch.setattr(planning, "protected", unprotected)
    monkeypatch.setattr(planning, "with_late_writes", lambda steps, inputs: steps)
    graph = gk.trace(written_first, SQUARE, SQUARE, SQUARE)
    with pytest.raises(VerifyError, match="after it was written over"):
        verify_plan(gk.compile(graph, flags={"enable_debug_mode": False}).plan)


def test_one_kernel_reads_no_other_element_than_it_writes() -> None:
    """A body that reads the transposed operand is not marked; marked by hand the generator keeps the old elements aside."""
    optimized = gk.optimize(gk.trace(read_unevenly, SQUARE, SQUARE, SQUARE))
    assert assign_in_place(optimized) is optimized
    body = "t: f32[64, 64] = Transpose(w, perm=(1, 0))\n  u: f32[64, 64] = Add(t, x)\n  return u -> w"
    text = f"kernel K(w: f32[64, 64], x: f32[64, 64]) {{ {body} }}\n"
    marked = gk.parse(
        text + "graph f(w: f32[64, 64], x: f32[64, 64]) {\n a: f32[64, 64] = K(w, x)\n return a -> w\n}\n"
    )
    w, x, _ = arrays()
    wanted = w.T + x
    gk.compile(marked, opt_level=0)(w, x)
    np.testing.assert_array_equal(w, wanted)


def test_what_is_made_of_an_updated_input_is_not_stored() -> None:
    """``0.9 * m`` stands beside the sum that reads it: the only temporary of the kernel is the product."""

    def step(w: Tensor, m: Tensor, v: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        gradient = ops.matmul(x, y, transpose_a=True)
        return ops.adam_weight_decay(w, m, v, 1e-3, 0.9, 0.999, 1e-6, 0.01, gradient)

    (kernel,) = gk.optimize(gk.trace(step, *[SQUARE] * 5)).operators
    assert kernel.body is not None
    assert len(kernel.body.aliases) == 3
    nest = kernelgen.compile(to_desc(kernel), target="cpu").stages["loops"]
    assert str(nest).count("workspace") == 1


def test_weights_that_are_laid_out_before_calls_stay_so() -> None:
    weights = np.random.default_rng(1).standard_normal((SIDE, SIDE)).astype(np.float32)
    graph = gk.trace(lambda w, x, y: ops.assign(w, w + ops.matmul(x, weights) * y), SQUARE, SQUARE, SQUARE)
    assert [prepared_operands(node) for node in gk.optimize(graph).operators if node.body is not None] != [()]
    assert holds(graph, gk.compile(graph))


def test_one_array_for_two_inputs() -> None:
    """Who is only read is copied first; two that are written cannot be one."""
    for host in ("numpy", "onnxruntime"):
        executable = gk.compile(gk.trace(written_first, SQUARE, SQUARE, SQUARE), host=host)
        w, x, y = arrays()
        wanted = executable(w.copy(), w.copy(), y)
        for got, want in zip(executable(w, w, y), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        both = gk.compile(gk.trace(both_moments, SQUARE, SQUARE, SQUARE), host=host)
        with pytest.raises(GraphKernelError, match=r"overlap|share memory"):
            both(x, y, x)


def test_results_that_are_inputs_go_into_given_arrays_too() -> None:
    executable = gk.compile(gk.trace(written_first, SQUARE, SQUARE, SQUARE))
    w, x, y = arrays()
    out = (np.empty_like(w), np.empty_like(w))
    found = executable(w, x, y, out=out)
    assert found[0] is out[0]
    np.testing.assert_array_equal(w, out[0])
