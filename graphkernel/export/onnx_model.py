"""A fused graph as an ONNX model that any runtime runs: every kernel a function of the model, called by a node.

    y = Fused_Add_Exp(a, b)     ->     the function graphkernel::Fused_Add_Exp { t = Add(a, b); y = Exp(t) }, and its call

Kernels that compute the same are one function. Symbols are ``dim_param``; what a function cannot read off its operands'
shapes it is given. Weights are initializers, equal ones once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from graphkernel import __version__
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import OptionError, TypeRuleError
from graphkernel.expanders.base import Expander, entry_name, expand
from graphkernel.export.onnx_nodes import value_info, write_node
from graphkernel.export.onnx_scope import Scope
from graphkernel.handoff import untold_symbols
from graphkernel.onnx_writing.writer import DEFAULT_OPSET, Unwritable
from graphkernel.ops.library.host import ONNX, domains_of, onnx_node, operator_name
from graphkernel.ops.library.host_bodies import bodies_of
from kernelgen.tensor.compare import difference
from kernelgen.tensor.graph import LEAVES, Builder, Graph, Node, Value, keep
from kernelgen.tensor.order import is_token, results_of
from kernelgen.tensor.types import Sym, is_whole, sym

DOMAIN = "graphkernel"
FUNCTIONS_IR_VERSION = 8  # the first in which models have functions
MOST_EXPANSIONS = 8  # of what an expansion is made of


@dataclass(frozen=True)
class OnnxModel:
    """A model without the content of its weights, and these by the name of their initializer."""

    proto: Any  # onnx.ModelProto
    weights: dict[str, np.ndarray]


def onnx_model(graph: Graph) -> OnnxModel:
    """The model of a graph. Raises ``OptionError``, which names the operator that ONNX has no form for, and why."""
    return _Model(_opset(graph)).of(_basic(graph, _opset(graph)))


@dataclass
class _Model:
    """The functions so far, and the nodes that call them by the function's name."""

    opset: int
    functions: list[tuple[Graph, Any]] = field(default_factory=list[tuple[Graph, Any]])
    calls: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    names: set[str] = field(default_factory=set[str])

    def of(self, graph: Graph) -> OnnxModel:
        """The whole model."""
        from onnx import helper

        scope = Scope(self.opset, derived={entry.name: entry for entry in graph.derived})
        scope.taken.update(_names_in_bodies(graph))
        _name_inputs(scope, graph)
        given = results_of(graph)
        ends = self.body(scope, graph, given, graph.output_names[: len(given)])
        inner = {
            value: name
            for value, name in scope.names.items()
            if value.node.op not in LEAVES and name not in ends and not is_token(value)
        }
        proto = helper.make_model(
            helper.make_graph(
                scope.nodes, graph.name, [value_info(scope.names[value], value.type) for value in graph.inputs],
                [value_info(name, value.type) for name, value in zip(ends, given, strict=True)],
                value_info=[value_info(name, value.type) for value, name in inner.items() if not is_whole(value.type.dtype)],
            ),
            functions=[made for _, made in self.functions], opset_imports=_imports(graph, self.opset, scope.nodes),
            producer_name=DOMAIN, producer_version=__version__,
        )  # fmt: skip
        least = helper.find_min_ir_version_for(proto.opset_import, ignore_unknown=True)
        proto.ir_version = max(FUNCTIONS_IR_VERSION, least)
        helper.set_model_props(proto, self.properties(graph, ends))
        return OnnxModel(proto, scope.constants)

    def body(self, scope: Scope, graph: Graph, given: Sequence[Value], outputs: Iterable[str]) -> list[str]:
        """Appends the nodes of a graph whose inputs have names; gives the names of ``given`` results, those that are wished."""
        ends = [
            name if scope.names.get(value) == name else scope.claim(name)  # an input that is handed on
            for value, name in zip(given, outputs, strict=True)
        ]
        final = dict(reversed(list(zip(given, ends, strict=True))))
        for node in graph.nodes:
            if node.data is not None:
                scope.names[node.out] = _constant(scope, node)
            elif node.op not in LEAVES:
                results = tuple(final.get(value) or scope.claim(_label(value)) for value in node.outs)
                self.operator(scope, node, results)
                for value, name in zip(node.outs, results, strict=True):
                    scope.define(value, name)
        for value, end in zip(given, ends, strict=True):
            if scope.names[value] != end:
                scope.emit("Identity", scope.names[value], result=end)
        return ends

    def operator(self, scope: Scope, node: Node, results: tuple[str, ...]) -> None:
        """Appends a call of a kernel, or the nodes of an operator."""
        from onnx import helper

        operands = tuple(scope.names[value] for value in node.args)
        if node.body is None:
            with _named(node):
                write_node(scope, node, operands, results)
            return
        with _named(node):
            extents = [scope.extent(sym(name)) for name in untold_symbols(node.body)]
        function = self.function(node.body)
        self.calls.setdefault(function, []).append(node.name)
        scope.nodes.append(helper.make_node(function, [*operands, *extents], results, name=node.name, domain=DOMAIN))

    def function(self, body: Graph) -> str:
        """The name of the function of a kernel: one that computes the same, or a new one."""
        found = next((made for known, made in self.functions if difference(known, body, names=False) is None), None)
        if found is None:
            found = self.new_function(body)
            self.functions.append((body, found))
        return found.name

    def new_function(self, body: Graph) -> Any:  # onnx.FunctionProto
        """The function of a kernel; its operands are the kernel's, and the extents that their shapes do not tell."""
        from onnx import helper, numpy_helper

        scope = Scope(self.opset)
        _name_inputs(scope, body)
        extents = {name: scope.claim(f"extent_{name}") for name in untold_symbols(body)}
        scope.told.update(extents)
        ends = self.body(scope, body, body.outputs, (value.node.name for value in body.outputs))
        constants = [
            helper.make_node("Constant", [], [name], name=name, value=numpy_helper.from_array(array))
            for name, array in scope.constants.items()
        ]
        name = body.name
        while name in self.names:
            name += "_"
        self.names.add(name)
        return helper.make_function(
            DOMAIN, name, [*(scope.names[value] for value in body.inputs), *extents.values()], ends,
            [*constants, *scope.nodes], _imports(body, self.opset, scope.nodes), doc_string=_about(body),
        )  # fmt: skip

    def properties(self, graph: Graph, ends: Sequence[str]) -> dict[str, str]:
        """What the model does not say by itself: which nodes call each kernel, and which inputs outputs are stored into."""
        updates = {ends[alias.output]: graph.input_names[alias.input] for alias in graph.aliases}
        found = {"graphkernel.kernels": json.dumps(self.calls)}
        return found | ({"graphkernel.updates": json.dumps(updates)} if updates else {})


def _name_inputs(scope: Scope, graph: Graph) -> None:
    """Inputs are called as they are; every symbol that their shapes tell is known from then on, in any order."""
    for value, name in zip(graph.inputs, graph.input_names, strict=True):
        scope.names[value] = scope.claim(name)
    before = -1
    while before < len(scope.sources):
        before = len(scope.sources)
        for value in graph.inputs:
            scope.read_symbols(value)


def _names_in_bodies(graph: Graph) -> set[str]:
    """What the bodies of operators such as Loop call their values: names of their own, which nothing outside may have."""
    found: set[str] = set()
    for node in graph.operators:
        if node.op is ONNX:
            waiting = list(bodies_of(onnx_node(node.attrs, map(str, range(len(node.args))), map(_label, node.outs))))
            while waiting:
                body = waiting.pop()
                found.update(name for each in body.node for name in each.output)
                found.update(each.name for each in (*body.input, *body.initializer))
                waiting.extend(inner for each in body.node for inner in bodies_of(each))
    return found


def _constant(scope: Scope, node: Node) -> str:
    if node.data is None or node.data.array is None:
        raise OptionError(f"constant {node.name}: its content is not known; load the graph with its weights")
    return scope.weight(node.data.digest, node.name, node.data.array)


def _label(value: Value) -> str:
    return f"{value.node.name}_{value.index}" if value.index else value.node.name


@contextmanager
def _named(node: Node) -> Generator[None]:
    try:
        yield
    except Unwritable as error:
        raise OptionError(f"{operator_name(node)} {node.name} cannot be written as ONNX: {error}") from error


def _about(body: Graph) -> str:
    """What a kernel holds, for people who look at it in a viewer."""
    counts = Counter(operator_name(node) for node in body.operators)
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in counts.items())


def _imports(graph: Graph, opset: int, nodes: Sequence[Any]) -> list[Any]:
    from onnx import helper

    own = (domains_of(node.attrs).items() for node in graph.operators if node.op is ONNX)
    versions = {**{node.domain: 1 for node in nodes if node.domain}, **dict(chain.from_iterable(own)), "": opset}
    return [helper.make_opsetid(domain, number) for domain, number in sorted(versions.items())]


def _opset(graph: Graph) -> int:
    """The newest that an operator of the model asks for; the rules of ours are written from a certain one on."""
    own = [node.attrs.int("opset") for node in graph.operators if node.op is ONNX and not node.attrs.str("domain", "")]
    return max((DEFAULT_OPSET, *own))


# ---------------------------------------------------------------- operators that are made of others


def _basic(graph: Graph, opset: int) -> Graph:
    """The graph in which operators without a form in ONNX are replaced by what they are made of, also in kernels."""
    expanders = {entry.name: entry for entry in builtin_catalogue().expanders}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node.body is not None:
            return replace(keep(node, args), body=_basic(node.body, opset)).outs
        entry = expanders.get(entry_name(node))
        return keep(node, args).outs if entry is None or _has_form(node, opset) else _expanded(entry, node, args)

    for _ in range(MOST_EXPANSIONS):
        found = graph.rebuild(rewrite)
        if difference(found, graph) is None:
            return graph
        graph = with_unique_labels(found)
    return graph


def _expanded(entry: Expander, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
    try:
        found = expand(entry, node, args, Builder(origin=node.name))
    except TypeRuleError:
        return keep(node, args).outs
    return found if isinstance(found, tuple) else keep(node, args).outs


def _has_form(node: Node, opset: int) -> bool:
    scope = _AnyExtent(opset)
    try:
        write_node(scope, node, tuple(scope.fresh("n") for _ in node.args), tuple(scope.fresh("n") for _ in node.types))
    except Unwritable:
        return False
    return True


class _AnyExtent(Scope):
    """A scope in which every symbol is known."""

    def extent(self, dim: Sym) -> str:
        return "n"
