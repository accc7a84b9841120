"""Why: the decisions of the optimizer, summarised, in full, or about two operators."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass

from graphkernel.decisions import REASONS, Decision
from graphkernel.errors import GraphKernelError, nearest
from graphkernel.report.answer import Pair, answer
from graphkernel.report.page import html
from graphkernel.report.page.counted import counted
from kernelgen.system.escape import line
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.names import meant
from kernelgen.tensor.origin import made_from, model_operators, origin_of


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What the optimizer made of a graph and every decision on the way, in order."""

    before: Graph
    after: Graph
    decisions: tuple[Decision, ...]

    def __str__(self) -> str:
        return "\n".join([self.summary, *map(str, self.decisions)])

    def __repr__(self) -> str:
        return f"<Explanation {self._headline}>"

    def _repr_html_(self) -> str:
        rows = [(count, code, REASONS[code]) for code, count in self._counts.items()]
        return html.section(self._headline, [html.table("decisions", ("times", "code", "reason"), rows)])

    @property
    def summary(self) -> str:
        """Counts: operators before, kernels after, and how often each reason was given."""
        told = [f"  {count:6} {code}: {REASONS[code]}" for code, count in self._counts.items()]
        return "\n".join([self._headline, *told])

    @property
    def _counts(self) -> dict[str, int]:
        return dict(sorted(Counter(decision.code for decision in self.decisions).items()))

    @property
    def _headline(self) -> str:
        kernels = [node for node in self.after.operators if node.body is not None]
        rest = len(self.after.operators) - len(kernels)
        before = counted(model_operators(self.before), "operator")
        became = f"{before} became {counted(len(kernels), 'kernel')} and {counted(rest, 'other')}"
        return line(f"{self.before.name}: {became}")

    def why(self, first: str, second: str, full: bool = False) -> str:
        """Why two nodes, operators or kernels are, or are not, in one kernel: an answer in the first line, how often, an
        example and what to do. ``full`` adds every decision about the two, those about both alone where there are any.

        An operator that was expanded is followed into what it became. Raises ``GraphKernelError`` with the nearest name
        when a name occurs nowhere.
        """
        pair = Pair(first, second, self._labels(first), self._labels(second))
        about = [[each for each in self.decisions if {each.subject, each.other} & side] for side in pair.sides]
        both = [decision for decision in about[0] if decision in about[1]]
        found = list(dict.fromkeys(both or [*about[0], *about[1]]))
        told = answer(self.before, self.after, self.decisions, pair)
        rest = [*map(str, found)] if full else [f"--all lists {counted(len(found), 'decision')} about them"]
        return "\n".join([*told, *rest])

    def to_json(self) -> str:
        """Every decision as JSON text."""
        return json.dumps({"schema": 1, "decisions": [asdict(decision) for decision in self.decisions]}, indent=2)

    def _labels(self, name: str) -> frozenset[str]:
        """The name itself, the labels of the nodes that it means, and of what was made from them."""
        bodies = [node.body for node in self.after.operators if node.body is not None]
        nodes = [node for graph in (self.before, self.after, *bodies) for node in graph.nodes]
        labels = {label for found in self.decisions for label in (found.subject, found.other)}
        labels.update(node.name for node in nodes)
        found = {node.name for node in nodes if name in (node.name, node.op.name)} | ({name} & labels)
        found |= made_from(name, self.before.origins)
        if not found:
            return self._labels(self._spelled(name, labels | {node.op.name for node in nodes}))
        known = found | {
            node.name for node in self.before.nodes
        }  # a label may look like one that was made from another
        return frozenset({name, *found, *(label for label in labels if origin_of(label, known) in found)})

    def _spelled(self, name: str, known: Collection[str]) -> str:
        """The name as labels, operators or the model have it; an error where none is meant."""
        of_model = {part for origin in self.before.origins.values() for part in (origin.operator, origin.node)}
        found = meant(name, {*known, *of_model})
        if found is None:
            raise GraphKernelError(f"nothing is called {name!r}{nearest(name, {*known, *of_model})}")
        return found
