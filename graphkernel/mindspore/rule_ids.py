"""The ids that MindSpore gives its rules, for ``enable_simplify_exprs_only`` and ``disable_simplify_exprs``.

The newest generation counts in two tiers from 0 (``2.17``), the first numbers its rules from 1 (``39``). An id stands for one
or more of our rules: some of MindSpore's are one equation in several shapes, which ours reach in steps.
"""

from __future__ import annotations

from collections.abc import Mapping

_TIER_1 = (
    "add_zero add_negative_zero", "add_negated sub_itself", "sub_zero", "sub_constant", "power_one", "power_two",
    "power_minus_one", "select_same", "double_negation", "mul_one", "mul_negated_by_constant", "one_over", "div_one",
    "sum_of_sum", "min_of_min", "max_of_max", "sum_of_negated", "real_part_of_complex", "imaginary_part_of_complex",
    "layout_and_back", "layout_of_layout", "transpose_of_transpose transpose_to_same", "transpose_as_reshape",
    "reshape_of_reshape", "transpose_of_transpose transpose_to_same reshape_of_reshape", "slice_of_all", "not_greater",
    "not_less_equal", "not_greater_equal", "not_less", "not_unequal", "not_equal_to", "sum_of_one", "min_of_one",
    "max_of_one", "cast_to_same", "cast_to_same", "transpose_of_transpose", "matmul_with_bias", "batch_matmul_with_bias",
)  # fmt: skip
_TIER_2 = (
    "add_then_sub", "add_common_factor", "add_two_constants", "add_and_sub_same", "sub_common_factor", "sub_common_factor",
    "sum_of_quotient", "sum_of_scaled", "log_of_exp", "log_of_power", "log_of_sqrt", "log_of_rsqrt", "power_of_exp",
    "sqrt_of_square", "rsqrt_of_inverse_square", "rsqrt_of_reciprocal", "mul_constants_apart", "mul_two_constants",
    "product_of_exps", "product_of_exps_within", "product_of_exps_within_both", "sqrt_squared", "sqrt_squared_within_both",
    "sqrt_squared_within", "product_of_sqrts", "rsqrt_squared", "rsqrt_squared_within", "rsqrt_squared_within_both",
    "product_of_rsqrts", "mul_own_rsqrt", "mul_of_abs", "mul_of_abs_within", "mul_of_abs_within_both", "quotient_of_exps",
    "div_by_exp", "div_by_power", "div_by_own_sqrt", "div_by_sqrt", "div_by_rsqrt", "div_by_constant div_by_power_of_two",
    "quotient_of_quotients", "div_negated_by_constant", "div_of_quotient", "div_by_quotient",
)  # fmt: skip

# The first generation's numbers, from 1, by the newest generation's ids; rule 21 is of that generation only.
_FIRST = (
    "1.0 2.1 2.2 1.1 2.0 2.3 1.2 1.3 2.4 2.5 2.8 2.9 2.10 2.11 1.4 2.12 1.5 1.6 2.13 2.14 gone 2.15 1.7 1.8 "
    "2.16 2.17 2.18 2.19 2.20 2.21 2.22 2.23 2.24 2.25 2.26 2.27 2.28 2.29 2.30 2.31 2.32 1.10 1.12 "
    "2.33 2.34 2.35 2.36 2.37 2.38 2.39 2.40 2.41 2.42 2.43 1.13 1.14 1.15 1.16 2.6 2.7 1.17 1.18 1.19 1.20 "
    "1.21 1.22 1.23 1.24 1.25 1.26 1.27 1.28 1.29 1.30 1.31 1.32 1.33 1.34 1.35 1.36 1.37"
)


def _table() -> dict[str, tuple[str, ...]]:
    found = {f"1.{index}": tuple(names.split()) for index, names in enumerate(_TIER_1)}
    found.update({f"2.{index}": tuple(names.split()) for index, names in enumerate(_TIER_2)})
    found["gone"] = ("one_over", "rsqrt_of_reciprocal")
    first = {str(number): found[newest] for number, newest in enumerate(_FIRST.split(), start=1)}
    del found["gone"]
    return {**found, **first}


RULES_BY_ID: Mapping[str, tuple[str, ...]] = _table()
"""Id -> names of our rules."""


def rule_names(entry: str) -> tuple[str, ...]:
    """The rules that an entry of a flag means: those of an id, or the one of that name."""
    return RULES_BY_ID.get(entry, (entry,))
