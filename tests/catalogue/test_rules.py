"""Every declared rule keeps the promise of its safety class, is alive, and does not make graphs dearer."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from graphkernel.declarations import builtin_catalogue
from graphkernel.patterns.arith_add import add_zero
from graphkernel.patterns.language import Rewrite, Rule, Safety, Term, rewrite, rule
from graphkernel.patterns.ranges import ANYTHING
from graphkernel.patterns.terms import exp, greater_equal, less, logical_not
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph, Value
from kernelgen.tensor.types import dtype
from tests.support.rule_samples import Instance, extreme, instances, tame, wild, within

RULES = builtin_catalogue().rules
COSTS = {"Exp": 8, "Log": 8, "Pow": 10, "RealDiv": 4, "Sqrt": 4, "Rsqrt": 4, "Reciprocal": 4, "Reshape": 0}
ROUNDINGS = 8


@pytest.fixture(params=RULES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Rule:
    return request.param


def test_the_rule_matches_what_it_says(entry: Rule) -> None:
    assert any(True for _ in instances(entry)), "no sample of the left side ever matches"


def test_the_rule_keeps_its_promise(entry: Rule) -> None:
    for instance in instances(entry):
        assert (fault := broken_promise(instance, instance.promise)) is None, f"{instance.left}{instance.right}{fault}"


def test_the_right_side_is_not_dearer(entry: Rule) -> None:
    for instance in instances(entry):
        assert cost(instance.right) <= cost(instance.left), f"{instance.left}{instance.right}"


def test_a_domain_rule_needs_its_domain(entry: Rule) -> None:
    """A rule that holds everywhere must say so, otherwise it never fires where it could."""
    domain = [instance for instance in instances(entry) if instance.promise is Safety.DOMAIN]
    if domain:
        assert any(broken_promise(instance, Safety.ROUNDING) for instance in domain), "ROUNDING would be true of it"


def test_a_rounding_rule_rounds(entry: Rule) -> None:
    """A rule that never changes a bit must say so, otherwise it does not fire by default."""
    rounding = [instance for instance in instances(entry) if instance.promise is Safety.ROUNDING]
    if rounding:
        assert any(broken_promise(instance, Safety.EXACT) for instance in rounding), "EXACT would be true of it"


def test_a_given_fact_keeps_the_better_promise(entry: Rule) -> None:
    if entry.given is None:
        return
    assert entry.given.promise < entry.safety
    tried = 0
    for instance in instances(entry):
        if instance.promise <= entry.given.promise:
            continue
        rng = np.random.default_rng(len(str(instance.left)))
        named = {value.node.name: value.type for value in instance.left.inputs}
        for _ in range(4):
            arrays = [within(entry.given.ranges.get(name, ANYTHING), type_, rng) for name, type_ in named.items()]
            fault = disagreement(instance, entry.given.promise, arrays)
            assert fault is None, f"{instance.left}{instance.right}{fault}"
            tried += 1
    assert tried, "no instance needs the fact"


def test_a_rule_that_promises_too_much_is_found() -> None:
    @rule(safety=Safety.EXACT)
    def not_less(x: Term, y: Term) -> Rewrite:
        return rewrite(logical_not(less(x, y)), greater_equal(x, y))

    @rule(safety=Safety.ROUNDING)
    def exp_sum(x: Term, y: Term) -> Rewrite:
        return rewrite(exp(x) * exp(y), exp(x + y))

    @rule(safety=Safety.DOMAIN)
    def wrong_sign(x: Term, y: Term, z: Term) -> Rewrite:
        return rewrite(x * y - x * z, x * (z - y))

    for entry in (not_less, exp_sum, wrong_sign, overpromised(add_zero)):
        assert any(broken_promise(instance, instance.promise) for instance in instances(entry)), entry.name


def overpromised(entry: Rule) -> Rule:
    return replace(entry, safety=Safety.EXACT)


def broken_promise(instance: Instance, promise: Safety) -> str | None:
    """What is wrong on some input, if anything."""
    rng = np.random.default_rng(zlib.crc32(str(instance.left).encode()))
    for sample in (tame,) if promise is Safety.DOMAIN else (wild, wild, extreme, extreme):
        fault = disagreement(instance, promise, [sample(type_, rng) for type_ in instance.types])
        if fault is not None:
            return fault
    return None


def disagreement(instance: Instance, promise: Safety, arrays: Sequence[np.ndarray]) -> str | None:
    """Where the two sides differ by more than the promise allows, if anywhere."""
    (left,), (right,) = evaluate(instance.left, arrays), evaluate(instance.right, arrays)
    wide, reach = true_value(instance.left, arrays)
    agrees = same_bits(left, right) | same_bits(rounded_to(wide, left.dtype), right)
    if promise is not Safety.EXACT:
        agrees |= close(left, right, wide, reach)
    if agrees.all():
        return None
    where = np.flatnonzero(~agrees.reshape(-1))[0]
    operands = [array.reshape(-1)[where] if array.shape == left.shape else "..." for array in arrays]
    return f"{operands}: left {left.reshape(-1)[where]!r}, right {right.reshape(-1)[where]!r}"


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Element by element; one NaN is as good as another."""
    return (a == b) & (np.signbit(a) == np.signbit(b)) | is_nan(a) & is_nan(b) if is_float(a) else a == b


def close(left: np.ndarray, right: np.ndarray, wide: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """As near to the true value as rounding of intermediate values up to ``reach`` allows, or as the left side is.

    Signs of zeros do not count.
    """
    if not is_float(left):
        return left == right
    limits = ml_dtypes.finfo(left.dtype)
    with np.errstate(all="ignore"):
        true = rounded_to(wide, left.dtype).astype(np.float64)
        rounding = ROUNDINGS * (float(limits.eps) * np.maximum(np.abs(true), reach) + float(limits.smallest_subnormal))
        error = np.abs(left.astype(np.float64) - true)
        allowed = rounding + 4 * np.where(np.isfinite(error), error, 0)
        near = np.isfinite(allowed) & (np.abs(right.astype(np.float64) - true) <= allowed)
    return (near & np.isfinite(true)) | (right == true) | (is_nan(right) & is_nan(true))


def is_nan(array: np.ndarray) -> np.ndarray:
    return np.isnan(array) if is_float(array) else np.zeros(array.shape, bool)


def is_float(array: np.ndarray) -> bool:
    return dtype(array.dtype).is_float


def rounded_to(wide: np.ndarray, to: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return wide.astype(to)


def true_value(graph: Graph, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The result in float64 where the graph computes in narrower floats, and the greatest value on the way to each element."""
    known = {value: in_float64(array) for value, array in zip(graph.inputs, arrays, strict=True)}
    for node in graph.operators:
        operands = [known[arg] if arg in known else _constant(arg) for arg in node.args]
        to_float = node.op.name == "Cast" and dtype(node.attrs.str("dst_type")).is_float
        attrs = node.attrs.with_(dst_type="float64") if to_float else node.attrs
        with np.errstate(all="ignore"):
            known[node.out] = np.asarray(node.op.meaning(*operands, attrs=attrs))
    result = known[graph.outputs[0]]
    on_the_way = [np.abs(array) for array in known.values() if array.shape == result.shape and is_float(array)]
    return result, np.max([np.where(np.isfinite(array), array, 0) for array in on_the_way] or [np.zeros(())], axis=0)


def in_float64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if is_float(array) else array


def _constant(value: Value) -> np.ndarray:
    assert value.constant is not None
    return in_float64(value.constant)


def size_of(value: Value) -> int:
    assert isinstance(value.type.size, int)
    return value.type.size


def cost(graph: Graph) -> int:
    """Elements touched, dear operators counted several times; what only concerns constants is computed once and free."""
    total = 0
    free: set[object] = set()
    for node in graph.operators:
        if all(arg.constant is not None or arg.node in free for arg in node.args):
            free.add(node)
        else:
            elements = max(size_of(value) for value in (*node.args, node.out))
            total += COSTS.get(node.op.name, 1) * elements
    return total
