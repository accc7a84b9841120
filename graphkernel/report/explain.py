"""Why: the decisions of the optimizer, summarised, in full, or about two operators."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass

from graphkernel.decisions import REASONS, Decision
from graphkernel.errors import GraphKernelError, nearest
from graphkernel.ir.graph import Graph


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the optimizer made of a graph and every decision on the way, in order."""

    before: Graph
    after: Graph
    decisions: tuple[Decision, ...]

    def __str__(self) -> str:
        return "\n".join([self.summary, *map(str, self.decisions)])

    @property
    def summary(self) -> str:
        """Counts: operators before, kernels after, and how often each reason was given."""
        kernels = [node for node in self.after.operators if node.body is not None]
        held = sum(len(node.body.operators) for node in kernels if node.body is not None)
        rest = len(self.after.operators) - len(kernels)
        counts = Counter(decision.code for decision in self.decisions)
        became = f"{len(self.before.operators)} operators became {len(kernels)} kernels of {held} and {rest} others"
        lines = [f"{self.before.name}: {became}"]
        lines += [f"  {count:6} {code}: {REASONS[code]}" for code, count in sorted(counts.items())]
        return "\n".join(lines)

    def why(self, first: str, second: str) -> str:
        """What was decided about two nodes, operators or kernels; decisions about both come alone when there are any.

        Raises ``GraphKernelError`` with the nearest name when a name occurs nowhere.
        """
        self._check_known(first)
        self._check_known(second)
        about = [[decision for decision in self.decisions if _concerns(decision, name)] for name in (first, second)]
        both = [decision for decision in about[0] if decision in about[1]]
        found = both or [*about[0], *(decision for decision in about[1] if decision not in about[0])]
        return "\n".join([self._together(first, second), *map(str, dict.fromkeys(found))])

    def to_json(self) -> str:
        """Every decision as JSON text."""
        return json.dumps({"schema": 1, "decisions": [asdict(decision) for decision in self.decisions]}, indent=2)

    def _together(self, first: str, second: str) -> str:
        for node in self.after.operators:
            inside = {
                name for inner in (node.body.operators if node.body else ()) for name in (inner.name, inner.op.name)
            }
            if node.body is not None and {first, second} <= inside:
                return f"{first} and {second} are both in kernel {node.body.name}"
        return f"no kernel holds both {first} and {second}"

    def _check_known(self, name: str) -> None:
        graphs = [self.before, self.after, *(node.body for node in self.after.operators if node.body is not None)]
        known = {label for graph in graphs for node in graph.nodes for label in (node.name, node.op.name)}
        known |= {label for decision in self.decisions for label in (decision.subject, decision.other)}
        if name not in known:
            raise GraphKernelError(f"nothing is called {name!r}{nearest(name, known)}")


def _concerns(decision: Decision, name: str) -> bool:
    return name in (decision.subject, decision.other)
