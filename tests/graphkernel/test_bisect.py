"""Bisect finds planted faults: in a pass, a rule, an expander, and in a compiled kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import kernelgen
from graphkernel import ops
from graphkernel.bisect import SWITCHES, bisect
from graphkernel.declarations import builtin_catalogue
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context, Pass, Place
from graphkernel.patterns.language import Rewrite, Safety, Term, rewrite, rule
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.operators.elemwise import EXP


def net(x: Tensor) -> Tensor:
    return ops.square(ops.exp(-x * 2.0))


GRAPH = trace(net, spec(("N", 4)))
ARRAYS = [np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)]
KNOWN = builtin_catalogue()


def exponential(graph: Graph, context: Context) -> Graph:
    return graph.with_outputs((Builder().emit(EXP, graph.outputs[0]),))


def fails(graph: Graph, context: Context) -> Graph:
    raise ZeroDivisionError("by zero")


@rule(safety=Safety.EXACT)
def sign_lost(x: Term) -> Rewrite:
    return rewrite(-x, x)


def cube(x: Tensor, *, attrs: object) -> Tensor:
    return x * x * x


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_nothing_is_found_where_nothing_is_wrong(level: int) -> None:
    assert bisect(GRAPH, ARRAYS, Options(opt_level=level)) is None


@pytest.mark.parametrize(("run", "said"), [(exponential, "changed output 0"), (fails, "ZeroDivisionError")])
def test_a_wrong_pass_is_switched_off_by_its_name(run: Any, said: str) -> None:
    wrong = Pass("wrong", run, place=Place("split.graph_kernel_splitter"))
    found = bisect(GRAPH, ARRAYS, Options(), replace(KNOWN, passes=(*KNOWN.passes, wrong)))
    assert found is not None
    assert (found.where, found.flags) == ("stage3_split_100_wrong", "--disable_pass=split.wrong")
    assert said in str(found)


def test_a_wrong_rule_is_named() -> None:
    found = bisect(GRAPH, ARRAYS, Options(), replace(KNOWN, rules=(*KNOWN.rules, sign_lost)))
    assert found is not None
    assert found.where == "stage2_highlevelopt1_3_arithmetic_simplify"
    assert found.flags == "--disable_simplify_exprs=sign_lost"


def test_a_wrong_expander_is_named() -> None:
    wrong = [replace(entry, function=cube) if entry.name == "Square" else entry for entry in KNOWN.expanders]
    found = bisect(GRAPH, ARRAYS, Options(), replace(KNOWN, expanders=tuple(wrong)))
    assert found is not None
    assert found.where == "stage1_cluster_3_graph_kernel_expander"
    assert found.flags == "--disable_expand_ops=Square"


def test_a_switch_is_tried_beside_the_passes_that_are_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pass leaves to another it does itself where that one is off: a trial must know of it, too."""

    def helped(graph: Graph, context: Context) -> Graph:
        context.log.add("wrong", "not-expanded-disabled", "x", message="Square")
        is_right = "Square" in context.options.disable_expand_ops and "winograd" in context.disabled
        return graph if is_right else exponential(graph, context)

    monkeypatch.setitem(cast("dict[str, str]", SWITCHES), "wrong", "disable_expand_ops")
    known = replace(KNOWN, passes=(*KNOWN.passes, Pass("wrong", helped, place=Place("split.graph_kernel_splitter"))))
    found = bisect(GRAPH, ARRAYS, Options(disable_pass=("winograd",)), known)
    assert found is not None
    assert found.flags == "--disable_expand_ops=Square"


class Spoiled:
    """A kernel whose first result is off by one."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        results = self.kernel(*inputs, out=out)
        results[0][...] += 1
        return results


def test_a_wrong_kernel_is_named() -> None:
    found = bisect(GRAPH, ARRAYS, Options(), compiler=lambda desc, target: Spoiled(kernelgen.compile(desc, target)))
    assert found is not None
    assert found.where.startswith("kernel Fused_")
    assert "of the largest value apart" in found.what
    assert found.flags.startswith("--disable_cluster_ops=")
