"""Plans of real graphs hold the invariants; a plan with a fault planted in it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import VerifyError
from graphkernel.runtime.invocation import make_frame
from graphkernel.runtime.onnxruntime.regions import OnnxRuntimeHost, RegionStep
from graphkernel.runtime.plan.plan import Plan
from graphkernel.runtime.plan.segments import Segment
from graphkernel.runtime.plan.verify_plan import INVARIANTS, broken, verify_places, verify_plan
from graphkernel.runtime.poison import POISONED, PoisonedMemory, poison
from graphkernel.runtime.steps.collective import CollectiveStep, WaitStep
from graphkernel.runtime.steps.host import NumpyHost
from graphkernel.runtime.steps.steps import KernelStep, ViewStep
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import dtype


def network() -> Graph:
    """Kernels, regions, numpy, views of each, an assigned input, an output that is a view, one that is an input."""

    def net(x: Any, w: Any, state: Any) -> Any:
        hidden = ops.matmul(x, w)
        flat = ops.reshape(ops.sinh(hidden), (-1,))
        again = ops.matmul(ops.reshape(flat, (4, 4)), w)
        ops.assign(state, ops.tanh(again) * 2.0 + state)
        view = ops.reshape(again, (16,))
        return ops.exp(again) + 1.0, view, x, ops.matmul(ops.sinh(again), hidden)

    return gk.trace(net, gk.spec((4, 4)), gk.spec((4, 4)), gk.spec((4, 4)), name="network")


def found() -> Graph:
    """Operators on as many elements as are found, and a value that waits for them in another segment."""
    return gk.parse(
        """kernel E(a: f32[8, 4]) { t: f32[8, 4] = Exp(a)
      return t }
    graph f(x: f32[8], w: f32[8, 4]) {
      i: i64[1, u0] = Onnx(x, op_type="NonZero", opset=17, result_types=("i64[1, u0]",), defines=("u0",))
      m: f32[8, 4] = MatMul(c, w)
      e: f32[8, 4] = E(m)
      j: i64[u0] = Reshape(i, shape=(u0,))
      r: f32[u0, 4] = Gather(e, j, axis=0)
      t: f32[u0, 4] = Exp(r)
      y: f32[u0, 4] = Neg(t)
      z: f32[u0, 4] = Mul(t, y)
      o: f32[u0, 8] = MatMul(z, m, transpose_b=True)
      return y, o
    }""".replace("i: i64", f"const c: f32[8, 8] = {[0.5] * 64}\n i: i64", 1)
    )


def summed() -> Graph:
    """Sums over processes, one of which is read at once and one that runs beside a kernel."""

    def net(x: Any, w: Any) -> Any:
        first, second = ops.all_reduce(ops.exp(x)), ops.all_reduce(ops.sinh(w))
        return ops.tanh(first) * 2.0, ops.exp(w) + second

    return gk.trace(net, gk.spec((4, 4)), gk.spec((4, 4)), name="summed")


def sent_by_rows() -> Graph:
    """A product with a constant whose rows are sent as they are done, and what follows it."""
    weight = np.ones((32, 512), np.float32)

    def net(x: Any) -> Any:
        return ops.tanh(ops.all_reduce(ops.sinh(x) @ weight, rank_size=2)) * 2.0

    return gk.trace(net, gk.spec((600, 32)), name="sent_by_rows")


def planned(graph: Graph, level: int = 2) -> Plan:
    return gk.compile(graph, level, host=OnnxRuntimeHost(threads=1)).plan


IN_PLACE = {
    "an input": "a: f32[8] = K(x)\n return a",
    "a value that is read later": "p: f32[8] = Neg(x)\n a: f32[8] = K(p)\n b: f32[8] = Add(a, p)\n return b",
    "a value with a view": "p: f32[8] = Neg(x)\n v: f32[2, 4] = Reshape(p, shape=(2, 4))\n a: f32[8] = K(p)\n return a, v",
    "an operand twice": "p: f32[8] = Neg(x)\n a: f32[8] = T(p, p)\n return a",
    "memory of its own": "p: f32[8] = Neg(x)\n a: f32[8] = K(p)\n b: f32[8] = Sinh(a)\n return b",
    "memory given back twice": "p: f32[8] = Neg(x)\n a: f32[8] = K(p)\n v: f32[2, 4] = Reshape(a, shape=(2, 4))\n return a, v",
    "an assigned input": "a: f32[8] = K(x)\n b: f32[8] = Neg(a)\n return b, a -> x",
}


def written_over(statements: str) -> Plan:
    """A plan with kernels that write over an operand."""
    graph = gk.parse(
        "kernel K(a: f32[8]) { t: f32[8] = Exp(a)\n return t -> a }\n"
        "kernel T(a: f32[8], b: f32[8]) { t: f32[8] = Mul(a, b)\n u: f32[8] = Add(t, b)\n return u -> a }\n"
        f"graph f(x: f32[8]) {{\n {statements}\n}}\n"
    )
    return gk.compile(graph, opt_level=0, host="numpy").plan


def changed(plan: Plan, number: int, **changes: Any) -> Plan:
    """The plan with one step changed."""
    steps: list[Any] = list(plan.steps)
    steps[number] = steps[number]._replace(**changes)
    return replace(plan, steps=tuple(steps))


def steps_reordered(plan: Plan) -> Iterator[Plan]:
    """The fault that showed callers the answer of the call before: a view behind the step that reads it."""
    for first, second in zip(range(len(plan.steps)), range(1, len(plan.steps)), strict=False):
        if set(plan.steps[first].outputs) & set(plan.steps[second].inputs):
            steps = list(plan.steps)
            steps[first], steps[second] = steps[second], steps[first]
            yield replace(plan, steps=tuple(steps))


def step_left_out(plan: Plan) -> Iterator[Plan]:
    for number in range(len(plan.steps)):
        yield replace(plan, steps=plan.steps[:number] + plan.steps[number + 1 :])


def step_twice(plan: Plan) -> Iterator[Plan]:
    for number in range(len(plan.steps)):
        yield replace(plan, steps=plan.steps[: number + 1] + plan.steps[number:])


def buffer_too_short(plan: Plan) -> Iterator[Plan]:
    for number, buffer in enumerate(plan.buffers):
        if buffer.last > buffer.first:
            yield with_buffer(plan, number, last=buffer.last - 1)


def buffer_too_late(plan: Plan) -> Iterator[Plan]:
    for number, buffer in enumerate(plan.buffers):
        yield with_buffer(plan, number, first=buffer.first + 1)


def buffer_left_out(plan: Plan) -> Iterator[Plan]:
    for number in range(len(plan.buffers)):
        yield replace(plan, buffers=plan.buffers[:number] + plan.buffers[number + 1 :])


def output_among_buffers(plan: Plan) -> Iterator[Plan]:
    for number, buffer in enumerate(plan.buffers):
        if buffer.escapes:
            yield with_buffer(plan, number, escapes=False)


def with_buffer(plan: Plan, number: int, **changes: Any) -> Plan:
    buffers = list(plan.buffers)
    buffers[number] = buffers[number]._replace(**changes)
    return replace(plan, buffers=tuple(buffers))


def output_not_copied(plan: Plan) -> Iterator[Plan]:
    for number, output in enumerate(plan.outputs):
        if output.copy:
            outputs = list(plan.outputs)
            outputs[number] = output._replace(copy=False)
            yield replace(plan, outputs=tuple(outputs))


def outputs_exchanged(plan: Plan) -> Iterator[Plan]:
    if len(plan.outputs) > 1:
        yield replace(plan, outputs=plan.outputs[::-1])


def view_beyond_its_base(plan: Plan) -> Iterator[Plan]:
    for number, step in enumerate(plan.steps):
        if isinstance(step, ViewStep):
            yield changed(plan, number, shape=(*step.shape, 2))


def other_operand(plan: Plan) -> Iterator[Plan]:
    for number, step in enumerate(plan.steps):
        spare = next((slot for slot in plan.slots.values() if slot not in step.inputs), None)
        if spare is not None and step.inputs:
            yield changed(plan, number, inputs=(spare, *step.inputs[1:]))


def writes_an_input(plan: Plan) -> Iterator[Plan]:
    for number, step in enumerate(plan.steps):
        yield changed(plan, number, outputs=(plan.inputs[0], *step.outputs[1:]))


def writes_a_constant(plan: Plan) -> Iterator[Plan]:
    for value in plan.constants:
        yield changed(plan, 0, outputs=(plan.slots[value],))


def slots_shared(plan: Plan) -> Iterator[Plan]:
    first, second = list(plan.slots)[-2:]
    yield replace(plan, slots={**plan.slots, first: plan.slots[second]})


def inputs_exchanged(plan: Plan) -> Iterator[Plan]:
    if len(plan.inputs) > 1:
        yield replace(plan, inputs=plan.inputs[::-1])


def copy_forgotten(plan: Plan) -> Iterator[Plan]:
    for number, step in enumerate(plan.steps):
        if isinstance(step, KernelStep) and step.private:
            yield changed(plan, number, private=frozenset())


def result_elsewhere(plan: Plan) -> Iterator[Plan]:
    for number, step in enumerate(plan.steps):
        if isinstance(step, KernelStep) and step.stored:
            yield changed(plan, number, stored=())


def kernel_makes_a_part(plan: Plan) -> Iterator[Plan]:
    for number, buffer in enumerate(plan.buffers):
        if not buffer.escapes:
            yield with_buffer(plan, number, made_by_kernel=True)


def numbers_of_a_step(plan: Plan) -> Iterator[Plan]:
    yield replace(plan, numbers=plan.graph.operators[-1:])


def bound_too_early(plan: Plan) -> Iterator[Plan]:
    if len(plan.segments) > 1:
        yield replace(plan, segments=(Segment(0, len(plan.steps)),))
        first, second, *_ = plan.segments
        yield replace(plan, segments=(first._replace(last=first.last - 1), second._replace(first=first.last - 1)))


def read_elsewhere(plan: Plan) -> Iterator[Plan]:
    for number, part in enumerate(plan.segments):
        if part.reads:
            name, slot, axis = part.reads[0]
            for reads in ((), ((name, slot, axis + 1),), ((name, plan.outputs[-1].slot, 0),)):
                parts = (*plan.segments[:number], part._replace(reads=reads), *plan.segments[number + 1 :])
                yield replace(plan, segments=parts)


def crossing_in_an_arena(plan: Plan) -> Iterator[Plan]:
    for number, buffer in enumerate(plan.buffers):
        if any(buffer.first < part.first <= buffer.last for part in plan.segments):
            yield with_buffer(plan, number, escapes=False, made_by_kernel=False)


def waited_too_late(plan: Plan) -> Iterator[Plan]:
    for number, step in enumerate(plan.steps[:-1]):
        if isinstance(step, WaitStep) and step.inputs[1] in plan.steps[number + 1].inputs:
            steps = list(plan.steps)
            steps[number], steps[number + 1] = steps[number + 1], step
            yield replace(plan, steps=tuple(steps))


def rows_of_nobody(plan: Plan) -> Iterator[Plan]:
    for number, step in enumerate(plan.steps):
        if isinstance(step, KernelStep) and step.ahead is not None:
            yield changed(plan, number, ahead=None)
        if isinstance(step, CollectiveStep) and step.takes_rows:
            yield changed(plan, number, takes_rows=False)


def operands_not_kept(plan: Plan) -> Iterator[Plan]:
    for number, step in enumerate(plan.steps):
        if isinstance(step, WaitStep) and len(step.inputs) > 3:
            yield changed(plan, number, inputs=step.inputs[:3])


FAULTS: dict[Callable[[Plan], Iterator[Plan]], set[str]] = {
    steps_reordered: {"P2"}, step_left_out: {"P2", "P11", "P16"}, step_twice: {"P3", "P16"}, waited_too_late: {"P16"},
    buffer_too_short: {"P9"}, buffer_too_late: {"P9"}, buffer_left_out: {"P9"}, output_among_buffers: {"P10", "P9", "P15"},
    output_not_copied: {"P11"},
    outputs_exchanged: {"P11"}, view_beyond_its_base: {"P5"}, other_operand: {"P4", "P16"}, writes_an_input: {"P3", "P4"},
    writes_a_constant: {"P3", "P4"}, slots_shared: {"P1"}, inputs_exchanged: {"P1"}, copy_forgotten: {"P6", "P7"},
    result_elsewhere: {"P8", "P9"}, numbers_of_a_step: {"P13"}, kernel_makes_a_part: {"P9"},
    bound_too_early: {"P14", "P15"}, rows_of_nobody: {"P17"},
    operands_not_kept: {"P17"}, read_elsewhere: {"P14"}, crossing_in_an_arena: {"P15"},
}  # fmt: skip


def plans() -> Iterator[Plan]:
    graph = network()
    yield from (planned(graph, level) for level in (0, 1, 2, 3))
    yield gk.compile(graph, 2, host=NumpyHost()).plan
    yield from map(written_over, IN_PLACE.values())
    yield from (planned(summed(), level) for level in (0, 2))
    yield planned(sent_by_rows())
    yield from (planned(found(), level) for level in (0, 2))
    yield gk.compile(found(), 2, host=NumpyHost()).plan


@pytest.fixture(scope="module")
def samples() -> tuple[Plan, ...]:
    return tuple(plans())


def test_plans_of_real_graphs_hold_the_invariants(samples: tuple[Plan, ...]) -> None:
    for plan in samples:
        verify_plan(plan)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_planted_faults_are_found(fault: Callable[[Plan], Iterator[Plan]], samples: tuple[Plan, ...]) -> None:
    faulty = [bad for plan in samples for bad in fault(plan)]
    assert faulty, "no plan has a place for the fault"
    for bad in faulty:
        found = {number for number, _ in broken(bad)}
        assert found & FAULTS[fault], f"{fault.__name__} passes in {bad.steps}"
        with pytest.raises(VerifyError, match=r"in the plan of"):
            verify_plan(bad)


def test_every_invariant_has_a_fault() -> None:
    assert {number for numbers in FAULTS.values() for number in numbers} | {"P12"} == set(INVARIANTS)


def test_buffers_that_overlap_in_life_and_place_are_found() -> None:
    plan = planned(network())
    frame = make_frame(plan.program, {}, POISONED)
    alive = [buffer for buffer in plan.buffers if not buffer.escapes]
    first, second = next((a, b) for a in alive for b in alive if a is not b and a.first <= b.first <= a.last)
    verify_places(plan.buffers, frame.slots)
    slots = list(frame.slots)
    slots[second.slot] = slots[first.slot]
    with pytest.raises(VerifyError, match="P12"):
        verify_places(plan.buffers, slots)


def test_the_debug_mode_verifies_and_poisons() -> None:
    graph = network()
    arrays = [np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4).copy() for _ in range(3)]
    executable = gk.compile(graph, flags="--enable_debug_mode=true")
    assert isinstance(executable.memory, PoisonedMemory)
    for got, wanted in zip(executable(*[a.copy() for a in arrays]), gk.evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.release_memory
def test_the_default_mode_does_neither() -> None:
    assert not isinstance(gk.compile(network()).memory, PoisonedMemory)


def test_poison_shows_what_a_wrong_plan_reads() -> None:
    """A region that runs before the view it reads: not the answer of the call before, but NaN, and in every call."""

    def net(x: Any, w: Any) -> Any:
        joined = ops.matmul(ops.reshape(x, (-1, 4)), w)
        return ops.matmul(ops.reshape(joined, x.shape), w)

    graph = gk.trace(net, gk.spec(("B", "S", 4)), gk.spec((4, 4)))
    right = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(threads=1))
    assert [type(step) for step in right.plan.steps] == [ViewStep, RegionStep, ViewStep, RegionStep]
    first, region, view, last = right.plan.steps
    wrong = gk.Executable(replace(right.plan, steps=(first, last, region, view)), right.report, POISONED)
    arrays = (np.ones((2, 3, 4), np.float32), np.eye(4, dtype=np.float32))
    for _ in range(3):
        assert np.isnan(wrong(*arrays)[0]).all()
        np.testing.assert_array_equal(right(*arrays)[0], arrays[0])


def test_poison_keeps_no_old_numbers_between_calls() -> None:
    plan = planned(network())
    executable = gk.Executable(plan, gk.compile(network()).report, POISONED)
    executable(*[np.full((4, 4), 0.5, np.float32) for _ in range(3)])
    ((frame,),) = executable._frames.values()
    inner = [frame.slots[buffer.slot] for buffer in plan.buffers if not buffer.escapes]
    assert inner
    assert all(np.isnan(array).all() for array in inner)


@pytest.mark.parametrize("of", ["float16", "float32", "float64", "complex64", "bfloat16"])
def test_poison_is_nan_in_every_float_type(of: str) -> None:
    assert np.isnan(poison(np.zeros((2, 3), dtype(of).numpy))).all()
    assert poison(np.zeros((), dtype(of).numpy)).shape == ()
