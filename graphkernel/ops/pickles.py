"""Operators in pickles: by name. Type rules and meanings are functions, which stay here."""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Callable, Mapping
from functools import cache
from inspect import getsource

from graphkernel.catalogue import OPERATOR_ROOMS, collect
from graphkernel.errors import GraphKernelError
from kernelgen.tensor import graph  # as a module: what stands in a namespace of this room is an operator of it
from kernelgen.tensor.operator import Operator


def operator_called(name: str) -> Operator:
    """What the name in a pickle stands for."""
    return _known()[name]


@cache
def _known() -> Mapping[str, Operator]:
    return {
        op.name: op
        for op in (
            *collect("kernelgen.tensor.operators", Operator),
            *collect("graphkernel.ops", Operator),
            graph.PARAMETER,
            graph.CONSTANT,
            graph.FUSED,
        )
    }


def file_of(op: Operator) -> str:
    """The dotted name of the file that declares an operator; empty for one of another package."""
    assert _known(), "all files are loaded"
    modules = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith(tuple(f"{room}." for room in OPERATOR_ROOMS))
    ]
    having = [module for module in modules if any(value is op for value in vars(module).values())]
    declaring = [module for module in having if f'"{op.name}"' in getsource(module)]
    return next((module.__name__ for module in (*declaring, *having)), "")


def _reduced(op: Operator) -> tuple[Callable[[str], Operator], tuple[str]]:
    if _known().get(op.name) is not op:
        raise GraphKernelError(f"operator {op.name} is not one of graphkernel's own: a pickle cannot hold it")
    return operator_called, (op.name,)


copyreg.pickle(Operator, _reduced)
