"""The kernels of a graph: equal ones are compiled once, many by processes beside this one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from graphkernel.cluster.own_products import prepared_operands
from graphkernel.handoff import PLAN, KernelDesc, key_of, planned, to_desc, untold_symbols, with_plain_sizes
from graphkernel.report.entries import FORESEEN, fallback, kernel_entry
from graphkernel.report.report import Fallback, KernelEntry
from graphkernel.runtime.cuda.device import Refusals
from graphkernel.runtime.plan.make_steps import CompiledKernel, preparation_of
from graphkernel.step_hooks import Progress
from kernelgen.kept_kernels import keep, recalled
from kernelgen.made_elsewhere import ElsewhereKernel, Order, made_elsewhere, workers_for
from kernelgen.system.escape import line
from kernelgen.tensor.graph import Graph, Node

LOGGER = logging.getLogger(__name__)

Compiler = Callable[..., Any]
"""``compiler(desc, target=...)`` gives ``kernel(*inputs, out=...)``: kernelgen.compile, or a stand-in."""


@dataclass(frozen=True)
class Build:
    """The compiled kernel of each fused node, what the report says of them, and why others have none."""

    compiled: Mapping[Node, CompiledKernel]
    entries: Sequence[KernelEntry]
    fallbacks: Sequence[Fallback]

    def without(self, refusals: Refusals) -> Build:
        """Without the kernels that a device refused."""
        refused = [node for node in self.compiled if node.name in refusals]
        return Build(
            {node: made for node, made in self.compiled.items() if node.name not in refusals},
            tuple(entry for entry in self.entries if refusals.keys().isdisjoint(entry.calls)),
            (*self.fallbacks, *(fallback(node, refusals[node.name]) for node in refused)),
        )


@dataclass(frozen=True)
class _Wanted:
    """A distinct kernel: its description, the operands that are constant, and the operators that it is for."""

    desc: KernelDesc
    constants: tuple[int, ...]
    calls: list[Node] = field(default_factory=list[Node])

    @property
    def is_ordered(self) -> bool:
        """Whether its order says all: no plan was found for it by tuning."""
        return PLAN not in self.calls[0].attrs

    @property
    def order(self) -> Order:
        """What asks for it."""
        return Order(self.desc, self.constants)


@dataclass(frozen=True)
class _Attempt:
    """What the compiler gave for a description: a kernel, or the exception (``result``) and no kernel."""

    result: Any
    kernel: CompiledKernel | None
    milliseconds: float


def build_kernels(graph: Graph, target: str, compiler: Compiler | None, progress: Progress | None) -> Build:
    """The kernels of the fused operators of a ``graph`` for a ``target``, by ``compiler``, or by kernelgen's own, which is told
    what is constant.

    ``progress`` is told how many are there. What cannot be compiled is a fallback.
    """
    wanted = _wanted(graph, target, compiler is None and target == "cpu")

    def tell(done: int) -> None:
        if progress is not None:
            progress("compiling kernels", done, len(wanted))

    attempts = _made_before_or_elsewhere(wanted, tell) if compiler is None and target == "cpu" else {}
    for done, (key, each) in enumerate(wanted.items()):
        tell(max(done, len(attempts)))
        if key not in attempts:
            attempts[key] = _made_here(each, target, compiler or _default_compiler())
            if compiler is None and target == "cpu" and each.is_ordered:
                _keep(each, attempts[key])
    tried = [(wanted[key].calls, attempts[key]) for key in wanted]
    return Build(
        {node: _told(node, a.kernel) for calls, a in tried if a.kernel is not None for node in calls},
        tuple(kernel_entry(calls, a.result, a.milliseconds) for calls, a in tried if a.kernel is not None),
        tuple(fallback(node, a.result) for calls, a in tried if a.kernel is None for node in calls),
    )


def _wanted(graph: Graph, target: str, has_constants: bool) -> Mapping[str, _Wanted]:
    found: dict[str, _Wanted] = {}
    for node in graph.operators:
        if node.body is not None:
            desc, fixed = to_desc(node, target), prepared_operands(node) if has_constants else ()
            key = f"{key_of(with_plain_sizes(desc))}{node.attrs.get(PLAN)}{fixed}"
            if key not in found:
                found[key] = _Wanted(desc, fixed)
            found[key].calls.append(node)
    return found


def _told(node: Node, kernel: CompiledKernel) -> CompiledKernel:
    """The kernel for this call, whose sizes have names of their own."""
    untold = untold_symbols(node.body) if node.body is not None else ()
    return replace(kernel, untold=untold) if untold else kernel


def _made_before_or_elsewhere(wanted: Mapping[str, _Wanted], tell: Callable[[int], None]) -> dict[str, _Attempt]:
    """What this machine keeps, and of the rest what other processes make: nothing where they do not pay."""
    orders = {key: each for key, each in wanted.items() if each.is_ordered}
    kept = {
        key: _attempt(made, each, made.milliseconds) for key, each in orders.items() if (made := recalled(each.order))
    }
    missing = {key: each for key, each in orders.items() if key not in kept}
    return kept | _made_elsewhere(missing, lambda done: tell(len(kept) + done))


def _made_elsewhere(orders: Mapping[str, _Wanted], tell: Callable[[int], None]) -> dict[str, _Attempt]:
    workers = workers_for(len(orders))
    if not workers:
        return {}
    made = made_elsewhere([each.order for each in orders.values()], workers, tell)
    found: dict[str, _Attempt] = {}
    for (key, each), result in zip(orders.items(), made, strict=True):
        if isinstance(result, ElsewhereKernel):
            found[key] = _attempt(result, each, result.milliseconds)
        elif result is not None:
            found[key] = _Attempt(result, None, 0.0)
    return found


def _made_here(each: _Wanted, target: str, compiler: Compiler) -> _Attempt:
    start = time.perf_counter()
    told = partial(compiler, constants=each.constants) if each.constants else compiler
    try:
        made = planned(told, each.calls[0])(each.desc, target=target)
    except FORESEEN as error:
        return _Attempt(error, None, 0.0)
    except Exception as error:  # a fault of the compiler: the graph still runs, and log and report show where it is
        LOGGER.exception("%s: runs without its kernel", line(each.desc.name))
        return _Attempt(error, None, 0.0)
    return _attempt(made, each, (time.perf_counter() - start) * 1e3)


def _keep(each: _Wanted, attempt: _Attempt) -> None:
    """Keeps a kernel that this process made."""
    from kernelgen.made_for_others import told_of  # needs the compiler, as the kernel did

    if attempt.kernel is not None:
        keep(each.order, lambda: told_of(attempt.result, attempt.milliseconds))


def _attempt(made: Any, each: _Wanted, milliseconds: float) -> _Attempt:  # any compiler's kernel
    kernel = CompiledKernel(made, each.desc.updated_inputs, preparation=preparation_of(made))
    return _Attempt(made, kernel, milliseconds)


def _default_compiler() -> Compiler:
    import kernelgen  # polyhedral and LLVM tools load when the first kernel is compiled

    return kernelgen.compile
