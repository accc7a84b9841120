from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import OptionError
from graphkernel.options import Options
from graphkernel.passes.simplify import enabled_rules
from graphkernel.patterns.ancestor_ids import RULES_BY_ID

RULES = builtin_catalogue().rules
SPEC = Path(__file__).parents[4] / "shared" / "spec" / "graph-kernel.md"


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


@pytest.mark.skipif(not SPEC.exists(), reason=f"{SPEC} is not there")
@pytest.mark.parametrize(
    ("id_", "equation"),
    [
        ("1.9", "Mul(A,1)=A"),
        ("1.22", "Transpose(A,B)=Reshape(A,C)"),
        ("2.17", "Mul(Mul(A,const1),const2)"),
        ("2.43", "B)"),
    ],
)
def test_ids_are_counted_as_in_the_table(id_: str, equation: str) -> None:
    (row,) = re.findall(rf"^\| \**{re.escape(id_)}\** \| (.*?) \|", SPEC.read_text(), re.MULTILINE)
    assert equation in row
