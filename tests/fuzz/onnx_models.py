"""Random ONNX models against onnxruntime without optimization: all operators that we read, every opset and data type.

A third has special values (NaN, infinities, extremes), a third symbolic extents. See ``models``.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

import graphkernel as gk
from graphkernel.errors import FrontendError, GraphKernelError
from graphkernel.frontends.onnx.importer import import_onnx
from kernelgen.tensor.graph import Graph
from tests.fuzz.fuzzer import Fuzzer
from tests.fuzz.models import sample as samples
from tests.fuzz.models.compare import differs
from tests.fuzz.models.mistakes import POOLS, leaves_its_axis, reason_of
from tests.fuzz.models.oracle import Array, Unable, single_node
from tests.fuzz.models.sample import ModelSample
from tests.fuzz.models.triage import Difference, chain, judge
from tests.fuzz.outcome import PASSED, Kind, Outcome, internal

CALLS = (0, 1, 0)
"""The sets in the order of the calls: the last shows whether a call sees what another one left."""


def check(sample: ModelSample, level: int) -> Outcome:
    """Loads, compiles, runs and compares."""
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _loaded(sample, level)


def _loaded(sample: ModelSample, level: int) -> Outcome:
    try:
        graph = import_onnx(sample.model)
    except FrontendError as error:
        return Outcome(Kind.REFUSED, refusal(str(error)), str(error))
    except Exception as error:
        return internal("import", error)
    try:
        executable = gk.compile(graph, opt_level=level)
    except GraphKernelError as error:
        return internal("compile", error.__cause__ or error)
    except Exception as error:
        return internal("compile", error)
    return _called(sample, executable, level)


def _called(sample: ModelSample, executable: Any, level: int) -> Outcome:
    explained = PASSED
    for of in [call for call in CALLS if call < len(sample.sets)]:
        try:
            results = executable(*sample.sets[of].values())
        except GraphKernelError as error:
            return _of_trust(sample, of) or internal("call", error)
        except Exception as error:
            return internal("call", error)
        outcome = _judged(sample, of, results, level)
        if outcome.is_finding:
            return outcome
        explained = outcome if outcome.kind is Kind.EXPLAINED else explained
    return explained


def _of_trust(sample: ModelSample, of: int) -> Outcome | None:
    """Why a call may fail: what only a call can tell, or a node whose result has another shape in onnxruntime.

    A slice of a symbolic axis may say more than the axis has. What fits a pool of onnxruntime need not fit the standard's.
    """
    values = chain(sample, sample.sets[of])
    for node in sample.model.graph.node:
        operands = [values[name] if name else None for name in node.input]
        if leaves_its_axis(node, operands):
            return Outcome(Kind.REFUSED, "Slice at a call: beyond the end of a symbolic axis")
        if node.op_type in POOLS and (reason := reason_of(node, operands)):
            return Outcome(Kind.EXPLAINED, f"{node.op_type}: {reason}")
    return None


def _judged(sample: ModelSample, of: int, results: Sequence[Array], level: int) -> Outcome:
    try:
        expected = chain(sample, sample.sets[of])
    except Unable as error:  # of a kept case, on another onnxruntime
        return Outcome(Kind.EXPLAINED, "onnxruntime does not run it", str(error))
    names = [output.name for output in sample.model.graph.output]
    texts = [differs(expected[name], np.asarray(r)) for name, r in zip(names, results, strict=True)]
    wrong = [f"set {of}, {name}: {text}" for name, text in zip(names, texts, strict=True) if text is not None]
    if not wrong:
        return PASSED
    found = {name: np.asarray(result) for name, result in zip(names, results, strict=True)}
    return judge(sample, Difference(of, found, wrong[0]), lambda *node: _alone(sample.opset, level, *node))


def _alone(
    opset: int, level: int, node: NodeProto, operands: Sequence[Array | None], constant: Sequence[bool]
) -> list[Array]:
    """One node through our hands at the same level."""
    model: ModelProto = single_node(node, opset, operands, constant)
    graph: Graph = import_onnx(model)
    given = [x for x, fixed in zip(operands, constant, strict=True) if x is not None and not fixed]
    return [np.asarray(result) for result in gk.compile(graph, opt_level=level)(*given)]


def refusal(message: str) -> str:
    """The class of a refusal: its text without names and numbers."""
    where, _, why = message.partition(": ")
    operator = where.split()[2] if where.startswith("node ") and len(where.split()) > 2 else where.split()[0]
    words = [word for word in why.replace("(", " ").split()[:12] if not any(sign.isdigit() for sign in word)]
    return f"{operator}: {' '.join(words)}"


def smaller(sample: ModelSample) -> Iterator[ModelSample]:
    """With fewer nodes, outputs and sets."""
    try:
        values = tuple(chain(sample, given) for given in sample.sets)
    except Unable:
        return iter(())
    return samples.smaller(sample, values)


FUZZER = Fuzzer(samples.draw, check, smaller, samples.to_json, samples.from_json, version=2, levels=True)
