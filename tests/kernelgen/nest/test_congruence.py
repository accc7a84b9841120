"""Residues of indices: what is said holds for all values of the variables, and what alignment needs is said."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from kernelgen.nest import index as ix
from kernelgen.nest.congruence import distance, residue
from kernelgen.nest.nodes import Index, IndexOp, Num, Var
from kernelgen.targets.python import eval_index

I, J, N = Var("i"), Var("j"), Var("N")  # noqa: E741  # the loops of these nests
NAMES = ("i", "j", "N")


def _binary(parts: tuple[IndexOp, Index, Index]) -> Index:
    op, left, right = parts
    if op in (IndexOp.DIV, IndexOp.MOD):
        right = ix.maximum(right, Num(1))
    return ix.binary(op, left, right)


LEAVES = st.one_of(st.integers(-40, 40).map(Num), st.sampled_from(NAMES).map(Var))
INDICES = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(list(IndexOp)), inner, inner).map(_binary), max_leaves=8
)
VALUES = st.fixed_dictionaries({name: st.integers(-100, 100) for name in NAMES})


@given(INDICES, st.sampled_from([2, 3, 8, 16, 64]), VALUES)
def test_a_residue_holds_for_all_values(index: Index, modulus: int, values: dict[str, int]) -> None:
    found = residue(index, modulus)
    assert found is None or eval_index(index, values) % modulus == found


@given(INDICES, INDICES, st.sampled_from([2, 8, 32]), VALUES)
def test_a_distance_holds_for_all_values(left: Index, right: Index, modulus: int, values: dict[str, int]) -> None:
    found = distance(left, right, modulus)
    assert found is None or (eval_index(left, values) - eval_index(right, values)) % modulus == found


def _row(row: Index, columns: Index, column: Index) -> Index:
    return ix.add(ix.multiply(row, columns), column)


def test_rows_of_a_matrix() -> None:
    below = ix.add(I, Num(1))
    assert distance(_row(below, Num(30528), J), _row(I, Num(30528), J), 16) == 0
    assert distance(_row(below, Num(30522), J), _row(I, Num(30522), J), 16) == 30522 % 16
    assert distance(_row(below, N, J), _row(I, N, J), 16) is None
    assert distance(_row(ix.add(I, Num(16)), N, J), _row(I, N, J), 16) == 0


def test_what_variables_are_known_to_be() -> None:
    assert residue(ix.multiply(I, Num(30522)), 16) is None
    assert residue(ix.multiply(I, Num(30522)), 16, {"i": ix.multiply(Var("t"), Num(8))}) == 0
    assert residue(ix.modulo(ix.multiply(I, Num(8)), Num(24)), 8) == 0
    assert residue(ix.modulo(ix.multiply(I, Num(8)), Num(12)), 8) is None


def test_rows_whose_length_is_a_multiple() -> None:
    length = ix.add(N, Num(3))
    assert residue(_row(I, length, Num(16)), 8) is None
    assert residue(_row(I, length, Num(16)), 8, zeros=[length]) == 0
    assert residue(_row(I, length, Num(3)), 8, zeros=[length]) == 3
    assert residue(_row(I, ix.add(N, Num(4)), Num(16)), 8, zeros=[length]) is None


@given(INDICES, INDICES, st.sampled_from([2, 3, 8]), VALUES)
def test_zeros_are_taken_for_what_they_are(index: Index, zero: Index, modulus: int, values: dict[str, int]) -> None:
    found = residue(index, modulus, zeros=[zero])
    assume(eval_index(zero, values) % modulus == 0)
    assert found is None or eval_index(index, values) % modulus == found
