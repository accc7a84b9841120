import ast
from pathlib import Path

import pytest

import kernelgen
from kernelgen.composite.vocabulary import ADD_N, SYNONYMS, WORDS, by_operator, facts, operator_named
from kernelgen.tensor.operators import catalogue as basic

ROOT = Path(kernelgen.__file__).parent
ROOMS = ("composite", "canonical", "semantics", "samples", "enclosure", "poly", "nest", "transforms")
SPELLED = {  # AKG's own files are read and written by these
    "composite/vocabulary.py": {*SYNONYMS, *(word.name for word in WORDS)} - {op.name for op in basic.OPERATORS},
}


def quoted(path: Path) -> set[str]:
    return {
        n.value
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


@pytest.mark.parametrize("room", ROOMS)
def test_an_operator_is_spelled_in_its_record_alone(room: str):
    known = {*SYNONYMS, *(word.name for word in WORDS)}
    for path in sorted((ROOT / room).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        assert quoted(path) & known <= SPELLED.get(place, set()), place


def test_operators_of_a_table_may_share_a_value():
    table = by_operator({(basic.ADD, ADD_N): 1, basic.RESHAPE: 2})
    assert table == {basic.ADD: 1, ADD_N: 1, basic.RESHAPE: 2}


def test_an_operator_has_all_names_that_akg_has_for_it():
    assert operator_named("TensorAdd") is operator_named("Add") is basic.ADD
    assert operator_named("EquivFormat") is basic.RESHAPE
    assert operator_named("Sorcery").name == "Sorcery"
    assert operator_named("Sorcery") not in WORDS


def test_facts_leave_out_the_operators_that_have_none():
    axes = facts(lambda op: op.traits.axis_of)
    assert (axes[basic.GATHER], axes[basic.ONE_HOT]) == ("operand", "result")
    assert basic.TRANSPOSE not in axes


def test_no_two_records_have_one_name():
    names = [*SYNONYMS, *(word.name for word in WORDS)]
    assert len(names) == len(set(names))
