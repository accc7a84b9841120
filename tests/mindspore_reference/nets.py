"""The checks of a net: its kernels, its passes and its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import PassError
from graphkernel.options import Options
from graphkernel.passes.base import Step, run_steps
from graphkernel.pipeline import steps_for
from graphkernel.step_hooks import SameNumbers, Verify
from kernelgen.tensor.graph import Graph
from tests.mindspore_reference.blocks import OUTSIDE, Block, Places, blocks, home, places
from tests.mindspore_reference.checks import Check, Outcome
from tests.mindspore_reference.rebuild import MONADS, Record, rebuild

BARE = "a bare name means every step of that pass here"

# Changes the numbers on purpose, or may.
LOOSE = {"exact_precision_mode": False, "enable_low_precision": True}


def check_net(record: Record, options: Options) -> Iterator[Outcome]:
    """Rebuilds the net, optimizes it with the record's options, and compares."""
    steps = steps_for(options)
    yield from check_passes(record, steps)
    try:
        graph = rebuild(record["graph"], record["net"])
    except (KeyError, ValueError) as error:
        yield Outcome.failure(Check.RECORD, f"{type(error).__name__}: {error}")
        return
    loose = any(getattr(options, flag) == value for flag, value in LOOSE.items())
    same = SameNumbers(arrays_for(graph), 1e-2 if loose else 1e-4, 1e-3 if loose else 1e-5)
    try:
        after = run_steps(graph, steps, builtin_catalogue().context(options), (Verify(), same))
    except PassError as error:
        yield Outcome.failure(Check.NUMBERS, str(error))
        return
    where = places(graph, after)
    yield from check_partition(record, options, where)
    yield from check_kept_out(record, options, graph, where)
    yield from check_launches(record, after)


def check_passes(record: Record, steps: Sequence[Step]) -> Iterator[Outcome]:
    """Every pass of the record is a step here, and is on here when it is on there."""
    ours = {step.name: step.enabled for step in steps}
    for line in record.get("passes") or ():
        name, status = line.rsplit(" ", 1)
        if name not in ours:
            yield Outcome.failure(Check.PASSES, f"there is no {name}")
        elif ours[name] != (status != "disabled"):
            text = f"{name} is {'on' if ours[name] else 'off'}, there {status}"
            bare = _named_barely(record["flags"] or "", name)
            if bare:
                yield Outcome.deviation(Check.PASSES, f"{text}: {BARE}")
            else:
                yield Outcome.failure(Check.PASSES, text)


def _named_barely(flags: str, step: str) -> bool:
    """True when enable_pass or disable_pass has the pass by its name alone."""
    names = [name for token in flags.split() if "_pass=" in token for name in token.partition("=")[2].split(",")]
    return any(step.endswith(f"_{name}") for name in names if "." not in name)


def check_partition(record: Record, options: Options, where: Places) -> Iterator[Outcome]:
    """Each kernel there lies inside one here."""
    found = blocks(record)
    if found is None:
        if record.get("graph_kernel_enabled"):
            yield Outcome.deviation(Check.PARTITION, "the record does not say which operators its kernels hold")
        return
    for block in found:
        if home(block, where) is None:
            reason = _torn_on_purpose(block, record, options, where)
            text = f"{record['net']}: {block.name} of {', '.join(sorted(block.whole | block.parts))}"
            if reason:
                yield Outcome.deviation(Check.PARTITION, f"{text}: {reason}")
            else:
                spread = {label: sorted(where.of(label)) for label in sorted(block.whole | block.parts)}
                yield Outcome.failure(Check.PARTITION, f"{text} is torn: {spread}")


def _torn_on_purpose(block: Block, record: Record, options: Options, where: Places) -> str | None:
    """Why a kernel there is none here."""
    labels = block.whole | block.parts
    if any(
        _named_barely(record["flags"] or "", f"_{name}") for name in ("graph_kernel_cluster", "graph_kernel_expander")
    ):
        return "a bare name means every step of that pass here"
    excluded = options.enable_cluster_ops_only or options.disable_cluster_ops
    if excluded and any(len(where.pieces.get(label, ())) > 1 for label in labels):
        return "an operator that a flag keeps out stays out of expansions too"
    return None


def _is_switched_off_barely(record: Record) -> bool:
    """True when a pass that makes kernels is off here by its bare name, which MindSpore does not know."""
    passes = ("graph_kernel_cluster", "graph_kernel_expander", "graph_kernel_splitter")
    return any(_named_barely(record["flags"] or "", f"_{name}") for name in passes)


def check_kept_out(record: Record, options: Options, graph: Graph, where: Places) -> Iterator[Outcome]:
    """What disable_cluster_ops and enable_cluster_ops_only exclude is in no kernel."""
    for node in graph.operators:
        only, name = options.enable_cluster_ops_only, node.op.name
        is_out = name not in only if only else name in options.disable_cluster_ops
        itself = where.pieces.get(node.name, {}).get(node.name, frozenset())  # not what an expansion made of it
        if is_out and itself - {OUTSIDE}:
            yield Outcome.failure(Check.OUTSIDE, f"{name} {node.name} is in {sorted(itself)}")


def check_launches(record: Record, after: Graph) -> Iterator[Outcome]:
    """As many kernels and operators as there at most; a reshape moves nothing."""
    if record.get("final_kernels") is None or record.get("ops_outside_kernels") is None:
        return
    there = len(record["final_kernels"]) + sum(name not in MONADS for name in record["ops_outside_kernels"])
    here = sum(node.op.name != "Reshape" for node in after.operators)
    if here <= there or not record["graph_kernel_enabled"]:
        return
    if _is_switched_off_barely(record):
        yield Outcome.deviation(Check.LAUNCHES, f"{here} launches, there {there}: {BARE}")
    else:
        yield Outcome.failure(Check.LAUNCHES, f"{here} launches, there {there}")


def arrays_for(graph: Graph) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Positive numbers near 1, so that roots, logarithms and powers stay well conditioned."""
    rng = np.random.default_rng(7)
    found: list[np.ndarray[Any, np.dtype[Any]]] = []
    for value in graph.inputs:
        shape = tuple(extent if isinstance(extent, int) else 16 for extent in value.type.shape)
        drawn = rng.uniform(0.5, 1.5, shape)
        to = value.type.dtype
        found.append((drawn > 1 if to.name == "bool" else drawn * 8 if to.is_integer else drawn).astype(to.numpy))
    return found
