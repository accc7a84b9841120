from __future__ import annotations

import pytest

from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import OptionError
from graphkernel.mindspore.rule_ids import RULES_BY_ID
from graphkernel.options import Options
from graphkernel.passes.simplify import enabled_rules

RULES = builtin_catalogue().rules


def test_every_id_of_every_generation_names_rules() -> None:
    tiers = [f"1.{index}" for index in range(40)] + [f"2.{index}" for index in range(44)]
    assert set(RULES_BY_ID) == {*tiers, *(str(number) for number in range(1, 82))}
    names = {rule.name for rule in RULES}
    assert {name for entry in RULES_BY_ID.values() for name in entry} <= names


def test_an_id_switches_its_rules() -> None:
    off = enabled_rules(RULES, Options.parse("--disable_simplify_exprs=2.4,1.9"))
    assert {rule.name for rule in RULES} - {rule.name for rule in off} == {"sub_common_factor", "mul_one"}
    only = enabled_rules(RULES, Options.parse("--enable_simplify_exprs_only=81,div_one"))
    assert {rule.name for rule in only} == {"transpose_of_transpose", "div_one"}


def test_an_unknown_id_is_a_mistake() -> None:
    with pytest.raises(OptionError, match=r"no rule is named '2\.99'"):
        enabled_rules(RULES, Options.parse("--disable_simplify_exprs=2.99"))


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("1.9", "mul_one"),  # Mul(A,1)=A
        ("1.22", "transpose_as_reshape"),  # Transpose(A,B)=Reshape(A,C)
        ("2.17", "mul_two_constants"),  # Mul(Mul(A,const1),const2)=Mul(A,Mul(const1,const2))
        ("2.43", "div_by_quotient"),  # RealDiv(A,RealDiv(B,C))=RealDiv(Mul(A,C),B)
    ],
)
def test_ids_are_counted_as_in_mindspore(id_: str, name: str) -> None:
    assert RULES_BY_ID[id_] == (name,)
