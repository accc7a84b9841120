"""The pass graph_kernel_cluster: every maximal connected set of clusterable operators becomes one fused node."""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel.cluster.ascend_checks import refusal as ascend_refusal
from graphkernel.cluster.fuse_nodes import extract
from graphkernel.cluster.maximal_clusters import clusters
from graphkernel.cluster.naming import FUSION, Names
from graphkernel.cluster.ops_lists import cluster_ops
from graphkernel.cluster.own_pieces import is_own_gather, pieces_beside_windows
from graphkernel.cluster.own_products import is_own
from graphkernel.cluster.partition import BASIC_OPERATORS
from graphkernel.decisions import DecisionLog
from graphkernel.ops.library.random import is_random
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.definitions import told_symbols
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.type_rules import KEEP_BASIC
from kernelgen.tensor.order import is_token

PASS_NAME = "graph_kernel_cluster"
NOBODY_TELLS: frozenset[str] = frozenset()

MOST_SIZES = 16
"""Unknown extents of one operator. A Concat of n parts of unknown length is n loops, each behind a sum of up to n extents and
with all of them at hand: compiling takes a second for 16 parts, 5 for 40 and 90 for 90, and a library moves them as fast.
"""


@graph_pass
def graph_kernel_cluster(graph: Graph, context: Context) -> Graph:
    """Draws clusters as large as they can be; the splitter cuts them into kernels that pay.

    A single operator becomes a kernel too, because a kernel call is cheaper than a host call; a lone Reshape is a view.
    """
    listed = _listed(context.options)
    told = told_symbols(graph) if context.options.target == "cpu" else NOBODY_TELLS
    refusals = {node: _refusal(node, listed, context.options, told) for node in graph.operators}
    refusals.update(_kept_pieces(graph, context.options))
    found = clusters(graph, lambda node: refusals[node] is None)
    groups = [group for group in found if _is_worth_a_kernel(group)]
    _record(refusals, found, context.log)
    if not groups:
        return graph
    names = Names()
    return extract(graph, groups, lambda body: names.named(body, FUSION))


def _kept_pieces(graph: Graph, options: Options) -> dict[Node, tuple[str, str]]:
    """The pieces that a CPU's library computes along with convolutions, unless a flag asks for kernels."""
    if options.target != "cpu":
        return {}
    asked = {*options.enable_cluster_ops, *options.enable_cluster_ops_only}
    kept = (node for node in pieces_beside_windows(graph) if node.op.name not in asked)
    return {
        node: ("not-fused-opaque", "the library computes it along with the convolutions beside it") for node in kept
    }


def can_join(node: Node, options: Options) -> bool:
    """True when a kernel of the target can hold the operator."""
    return _refusal(node, _listed(options), options, NOBODY_TELLS) is None


def _listed(options: Options) -> frozenset[str]:
    """The names that may be clustered: ``enable_cluster_ops_only`` rules the other lists out, disabling beats enabling."""
    if options.enable_cluster_ops_only:
        return frozenset(options.enable_cluster_ops_only)
    default = cluster_ops(options.target, options.ops_level)
    return (default | set(options.enable_cluster_ops)) - set(options.disable_cluster_ops)


def _refusal(node: Node, listed: frozenset[str], options: Options, told: frozenset[str]) -> tuple[str, str] | None:
    """Why a node cannot be in a kernel, as reason code and message; None when it can.

    ``told`` are the symbols that kernels can be told though no operand of theirs has them.
    """
    name = node.op.name
    if node.body is not None:
        return "not-fused-opaque", "it is a kernel already"
    if not _is_ours(node, options) and name not in listed and not _brings_rule(node, options):
        return _unlisted(node, options)
    if is_random(node):
        return "not-fused-opaque", "it draws anew in each run, and what is in a kernel may be computed twice"
    for value in (*node.outs, *node.args):
        if (reason := _unfit(value)) is not None:
            return reason
    unfit = _kept(node) or _brings_symbol(node, told) or _has_many_sizes(node)
    return unfit or (_unfit_for_ascend(node) if options.target == "ascend" else None)


def _is_ours(node: Node, options: Options) -> bool:
    """What the CPU's own passes found to be kernels."""
    return is_own(node) or (options.target == "cpu" and is_own_gather(node))


def _brings_rule(node: Node, options: Options) -> bool:
    """An operator that says itself how kernels compute it, which needs no list; flags may still rule it out."""
    return (
        node.op.brings_rule and not options.enable_cluster_ops_only and node.op.name not in options.disable_cluster_ops
    )


def _kept(node: Node) -> tuple[str, str] | None:
    """An attribute that asks for an ordinary operator: of the user (``keep_basic``), or of in-place schemes."""
    found = next((key for key in node.attrs if key in KEEP_BASIC and node.attrs[key] is not False), None)
    return None if found is None else ("not-fused-kept", f"{node.name} has the attribute {found}")


def _brings_symbol(node: Node, told: frozenset[str]) -> tuple[str, str] | None:
    """A symbolic extent that no operand has: a kernel reads its extents off its operands, or is told what inputs tell."""
    known = told.union(name for value in node.args for name in value.type.symbols)
    strange = sorted({name for type_ in node.types for name in type_.symbols}.difference(known))
    return ("not-fused-symbol", f"no operand of {node.name} has the extent {strange[0]}") if strange else None


def _has_many_sizes(node: Node) -> tuple[str, str] | None:
    """More unknown extents than code can tell apart in reasonable time."""
    sizes = {name for value in (*node.args, *node.outs) for name in value.type.symbols}
    if len(sizes) <= MOST_SIZES:
        return None
    return "not-fused-symbol", f"{node.name} has {len(sizes)} unknown extents, a kernel's operator at most {MOST_SIZES}"


def _unfit_for_ascend(node: Node) -> tuple[str, str] | None:
    found = ascend_refusal(node)
    return None if found is None else (found.code, found.message)


def _unlisted(node: Node, options: Options) -> tuple[str, str]:
    name = node.op.name
    if options.enable_cluster_ops_only or name in options.disable_cluster_ops:
        return "not-fused-disabled", f"{name} is excluded by a cluster_ops flag"
    if node.op.composite or node.op.kind is Kind.OPAQUE:
        return "not-fused-opaque", f"kernels do not compute {name} on {options.target}"
    return (
        "not-fused-unlisted",
        f"{name} is not in the list of {options.target} at fusion_ops_level={options.ops_level}",
    )


def _unfit(value: Value) -> tuple[str, str] | None:
    """Why a tensor cannot be an operand or result of a kernel."""
    type_ = value.type
    if type_.dtype.name.startswith("complex") or type_.dtype.is_opaque:
        return "not-fused-dtype", f"{value.node.name} is {type_}"
    if type_.size == 0 and not is_token(value):
        return "not-fused-empty", f"{value.node.name} is {type_}"
    return None


def _is_worth_a_kernel(group: tuple[Node, ...]) -> bool:
    """False for views, and for a product or another library operator alone."""
    if len(group) > 1 and any(node.op.kind is Kind.OPAQUE for node in group):
        return True
    return any(node.op not in BASIC_OPERATORS or is_own(node) for node in group)


def _record(refusals: dict[Node, tuple[str, str] | None], found: Sequence[tuple[Node, ...]], log: DecisionLog) -> None:
    for node, refusal in refusals.items():
        if refusal is not None:
            log.add(PASS_NAME, refusal[0], node.name, message=refusal[1])
    for group in found:
        first, *others = group
        if not _is_worth_a_kernel(group):
            for node in group:
                log.add(PASS_NAME, "inlined-basic", node.name)
        elif not others:
            log.add(PASS_NAME, "fused-single", first.name)
        else:
            for node in others:
                log.add(PASS_NAME, "fused-cluster", first.name, node.name)
    home = {node: number for number, group in enumerate(found) for node in group}
    for node, number in home.items():  # clusters are maximal: nothing but a cycle keeps neighbours apart
        for producer in dict.fromkeys(arg.node for arg in node.args):
            if home.get(producer, number) != number:
                log.add(PASS_NAME, "not-fused-cycle", producer.name, node.name)
