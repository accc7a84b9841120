"""Weights: inputs whose content networks know before all calls. A CPU's kernels are prepared from them.

What such a kernel does is other code than that of the same description without: weights are laid out anew, and rows meet
numbers that are stored as bytes as fixed point. So a kernel is verified once more as one that is told of its weights.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kernelgen.composite.description import KernelDesc
from kernelgen.enclosure.table import ON_FIXED_POINT, RULES, Rules
from kernelgen.kernel import Kernel
from kernelgen.nest.walk import calls_of, statements
from kernelgen.samples.inputs import FACTORS
from kernelgen.tensor.dims import product
from kernelgen.tensor.graph import Value
from kernelgen.verify.record import Record, Status, with_run

NOTHING: frozenset[int] = frozenset()


def weights_of(desc: KernelDesc) -> tuple[int, ...]:
    """The positions of inputs that operands of products are computed from, but for the first ones, which are rows.

    Nothing where the kernel updates inputs: networks know nothing early then.
    """
    sources: dict[Value, frozenset[int]] = {
        value: frozenset({place}) for place, value in enumerate(desc.graph.inputs) if product(value.shape) != 1
    }
    rows, weights = NOTHING, NOTHING
    for node in desc.operators:
        given = [sources.get(value, NOTHING) for value in node.args]
        if FACTORS.get(node.op) == (0, 1):
            rows, weights, given = rows | given[0], weights.union(*given[1:]), given[:1]
        sources |= dict.fromkeys(node.outs, NOTHING.union(*given))
    return () if desc.updates else tuple(sorted(weights - rows))


def with_known_weights(record: Record, again: Record, names: tuple[str, ...]) -> Record:
    """The ``record`` of a kernel that passed, with that of the one that is told of weights: ``again``, and their ``names``."""
    if again.status is not Status.PASSED:
        return replace(again, message=f"{', '.join(names)} known before all calls: {again.message}", weights=names)
    return replace(
        with_run(record, again),
        proof=dict(Counter(record.proof) + Counter(again.proof)),
        features={**again.features, **record.features},
        checked={**record.checked, **{f"{name}, weights known": shown for name, shown in again.checked.items()}},
        placements=record.placements + again.placements,
        weights=names,
    )


def roundings_of(kernel: object) -> Rules:
    """How a kernel's operators round: sums of digits take rows as fixed point, which nothing else needs a power of two for."""
    if not isinstance(kernel, Kernel):
        return RULES
    called = {call.function for part in statements(kernel.nest.body) for call in calls_of(part)}
    return ON_FIXED_POINT if "power_of_two" in called else RULES
