"""The pass graph_kernel_recompute: a value that waits long for its last reader is computed again there.

Before and after::

    a = K(x); b = Library(a); c = L(a, b)    ==>    a = K(x); b = Library(a); c = KL(x, b)

``a`` need not live while ``b`` is computed; the work of K is done twice. The edge from K to L is *long term* when another
path joins them, as here through ``b``, and *short term* otherwise. The threshold is ``recompute_peak_threshold`` for short
edges and the lesser of it and ``recompute_increment_threshold`` for long ones; 0 means never. The gain is the size of the
values that die earlier, less that of K's operands which must live longer for it. A value that somebody reads behind L, or
that the graph returns, does not die earlier, so there is no gain: MindSpore does not ask.

With ``enable_csr_fusion`` any gain is enough where the reader works on a sparse matrix, and operators on the stored values
of one may be computed twice: the dense value between two such kernels is larger than what it is made of.

Source: MindSpore's graph kernel recompute, which makes two rounds; here they go on until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from graphkernel.cluster.cost import byte_size, human
from graphkernel.cluster.fuse_nodes import call_of, is_scalar_constant, splice, with_unique_labels
from graphkernel.cluster.maximal_clusters import edges
from graphkernel.cluster.merge_dag import Reach
from graphkernel.cluster.naming import RECOMPUTE, Names
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.cse import merge_equal
from kernelgen.tensor.graph import LEAVES, PARAMETER, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.csr import CSR_DIV, CSR_GATHER, CSR_MUL, CSR_REDUCE_SUM
from kernelgen.tensor.operators.scatter import UNSORTED_SEGMENT_SUM
from kernelgen.tensor.types import Attrs, Dim

PASS_NAME = "graph_kernel_recompute"
SPARSE_ELEMENTWISE = frozenset({CSR_MUL, CSR_DIV})
SPARSE = SPARSE_ELEMENTWISE | {CSR_REDUCE_SUM, CSR_GATHER, UNSORTED_SEGMENT_SUM}


@graph_pass
def graph_kernel_recompute(graph: Graph, context: Context) -> Graph:
    """Clones a kernel into a late reader when the memory that this frees exceeds the thresholds of the flags."""
    options = context.options
    if not (options.recompute_increment_threshold or options.recompute_peak_threshold or options.enable_csr_fusion):
        return graph
    refused: dict[tuple[str, str], str] = {}
    names = Names.beside(graph)
    changed = True
    while changed:
        changed = False
        for candidate in _candidates(graph):
            refusal = _refusal(candidate, context.options)
            if refusal:
                refused[candidate.source.name, candidate.target.name] = refusal
                continue
            context.log.add(PASS_NAME, "recomputed", candidate.source.name, candidate.target.name, candidate.figures)
            graph, changed = _cloned(graph, candidate, names), True
            break
    for (source, target), message in refused.items():
        context.log.add(PASS_NAME, "not-recomputed", source, target, message)
    return graph


def threshold(options: Options, *, long_term: bool) -> int | None:
    """The bytes that recomputing must free on a long or a short edge; None when it never may."""
    given = [options.recompute_peak_threshold]
    if long_term:
        given.append(options.recompute_increment_threshold)
    return min((size for size in given if size > 0), default=None)


@dataclass(frozen=True)
class Candidate:
    """A kernel and a reader of its ``values``; ``freed`` and ``kept`` are bytes. ``lives_on``: others need them later."""

    source: Node
    target: Node
    values: tuple[Value, ...]
    long_term: bool
    freed: Dim
    kept: Dim
    lives_on: bool

    @property
    def figures(self) -> str:
        """What the decision was taken on."""
        term = "long" if self.long_term else "short"
        return f"{term} term, {human(self.freed)} die earlier, {human(self.kept)} live longer"


def _candidates(graph: Graph) -> Iterator[Candidate]:
    """Pairs of a kernel that may be computed twice and a reader of its values, latest readers first."""
    position = {node: number for number, node in enumerate(graph.operators)}
    reach = Reach(len(position), edges(graph.operators))
    last_use = _last_uses(graph, position)
    for target in reversed(graph.operators):
        if target.body is None or target.body.aliases:
            continue
        for source in dict.fromkeys(arg.node for arg in target.args):
            values = tuple(value for value in dict.fromkeys(target.args) if value.node is source)
            if not _is_cheap(source):
                continue
            long_term = not reach.is_acyclic((position[source], position[target]))
            freed = _total(values)
            kept = _total(value for value in source.args if _lives_longer(value, position[target], last_use))
            lives_on = any(last_use[value] > position[target] for value in values)
            yield Candidate(source, target, values, long_term, freed, kept, lives_on)


def _last_uses(graph: Graph, position: Mapping[Node, int]) -> Mapping[Value, int]:
    """The position of the last operator that reads a value; behind all for what the graph returns."""
    last: dict[Value, int] = {}
    for node in graph.operators:
        last.update(dict.fromkeys(node.args, position[node]))
    last.update(dict.fromkeys(graph.outputs, len(position)))
    return last


def _is_cheap(source: Node) -> bool:
    """A kernel whose every result element is a few operations on a few elements, so that computing it twice costs little."""
    body = source.body
    return (
        body is not None
        and not body.aliases
        and all(node.op.kind < Kind.REDUCE or node.op in SPARSE_ELEMENTWISE for node in body.operators)
    )


def _lives_longer(value: Value, position: int, last_use: Mapping[Value, int]) -> bool:
    """Whether an operand would die before the position; inputs and constants never do."""
    return value.op not in LEAVES and last_use[value] < position


def _total(values: Iterable[Value]) -> Dim:
    total: Dim = 0
    for value in dict.fromkeys(values):
        total = total + byte_size(value)
    return total


def _refusal(candidate: Candidate, options: Options) -> str:
    """Why the candidate is not taken; empty when it is."""
    if candidate.lives_on:
        return "its values are read or returned later, so they must live anyway"
    least = threshold(options, long_term=candidate.long_term)
    if options.enable_csr_fusion and any(node.op in SPARSE for node in _body(candidate.target).operators):
        least = 0
    if least is None:
        return f"{candidate.figures}; no threshold is given for such edges"
    if not _surely_more(candidate.freed - candidate.kept, least):
        return f"{candidate.figures}; not more than {human(least)}"
    size = sum(len(_body(node).operators) for node in (candidate.source, candidate.target))
    if size > options.composite_op_limit_size:
        return f"{size} operators are more than composite_op_limit_size={options.composite_op_limit_size}"
    return ""


def _surely_more(gain: Dim, least: int) -> bool:
    """Whether a gain exceeds the bytes for all extents >= 1; False when that is not seen at once."""
    if isinstance(gain, int):
        return gain > least
    grows = all(coefficient > 0 for powers, coefficient in gain.terms if powers)
    return grows and sum(coefficient for _, coefficient in gain.terms) > least


def _cloned(graph: Graph, candidate: Candidate, names: Names) -> Graph:
    """The graph in which the target computes the values of the source itself."""
    source, target = candidate.source, candidate.target
    body, operands = joined(source, target)
    call = call_of(names.named(merge_equal(body, Context(), PASS_NAME), RECOMPUTE), operands)

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node is not target:
            return keep(node, args).outs
        known = dict(zip(target.args, args, strict=True))
        moved = next(arg.node for old, arg in known.items() if old.node is source)
        known.update(zip(source.args, moved.args, strict=True))
        return replace(call, args=tuple(known[value] for value in operands), name=target.name).outs

    return with_unique_labels(graph.rebuild(rewrite))


def joined(source: Node, target: Node) -> tuple[Graph, tuple[Value, ...]]:
    """The body that computes what the target does, the values of the source included, and its operands."""
    inside: dict[Value, Value] = {}

    def operand(value: Value) -> Value:
        if is_scalar_constant(value):
            return value
        label = value.node.name if len(value.node.types) == 1 else f"{value.node.name}_{value.index}"
        return inside.setdefault(value, Node(PARAMETER, (), Attrs(), (value.type,), label).out)

    again = splice(_body(source), [operand(value) for value in source.args])
    given = dict(zip(source.outs, again, strict=True))
    results = splice(_body(target), [given.get(value) or operand(value) for value in target.args])
    used = {arg for node in Graph("body", (), results).nodes for arg in node.args}
    needed = {value: made for value, made in inside.items() if made in used or made in results}
    return with_unique_labels(Graph("body", tuple(needed.values()), results)), tuple(needed)


def _body(kernel: Node) -> Graph:
    assert kernel.body is not None, "only kernels are recomputed"
    return kernel.body
