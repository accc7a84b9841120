import ast
from pathlib import Path

import pytest

import kernelgen
from kernelgen.composite.vocabulary import ADD_N, SYNONYMS, WORDS, by_name, facts
from kernelgen.tensor.operators import catalogue as basic

ROOT = Path(kernelgen.__file__).parent
ROOMS = ("composite", "canonical", "semantics", "samples", "enclosure", "poly", "nest", "transforms")
SPELLED = {  # AKG's own files are read and written by these
    "composite/description.py": {"Assign", "InplaceAssign"},
    "composite/read.py": {"Add", "TensorAdd", "ReduceProd", "ReducePrd"},
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


def test_a_table_answers_to_all_names_that_akg_has_for_an_operator():
    table = by_name({(basic.ADD, ADD_N): 1, basic.RESHAPE: 2})
    assert table == {"Add": 1, "TensorAdd": 1, "AddN": 1, "Reshape": 2, "EquivFormat": 2}


def test_facts_leave_out_the_operators_that_have_none():
    axes = facts(lambda op: op.traits.axis_of)
    assert (axes["Gather"], axes["OneHot"]) == ("operand", "result")
    assert "Transpose" not in axes


def test_no_two_records_have_one_name():
    names = [*SYNONYMS, *(word.name for word in WORDS)]
    assert len(names) == len(set(names))
