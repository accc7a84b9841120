"""Einsum as products, sums and transpositions: what numpy computes, with known and with open extents."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.ops.library.host import ONNX
from kernelgen.tensor.graph import Graph
from tests.support.onnx_models import model, run_onnxruntime

EXTENTS = {letter: extent for extent, letter in enumerate("abcdefhijkn", 2)}
EQUATIONS = (
    "ij,jk->ik", "ij,jk", "ij,kj->ki", "ki,kj->ij", "ij->ji", "ji", "ij->", "ij->j", "i,j->ij", "i,i->", "i,i->i",
    "ibh,hnd->ibnd", "ibnd,jbnd->bnij", "bnij,jbnd->ibnd", "bhij,bhjd->bihd", "bhc,hkc->bhk", "bhd,nd->bhn", "abcd,abe->abecd",
    "ak,akh->ah", "abc,b->ac", "abij,abk->ijab", "abij,cdij->abcd", "ij,jk,kn->in", "ab,bc,cd,de->ae", "bihc,bjhc,bj->bhij",
    "ab,ab,ab->b", "abc,cd->dab", "ka,kbc->bac", "ij,kn->i",
)  # fmt: skip


def drawn(equation: str, extents: dict[str, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    terms = equation.partition("->")[0].split(",")
    shapes = [[extents[letter] for letter in term] for term in terms]
    return {f"x{place}": random.standard_normal(shape).astype(np.float32) for place, shape in enumerate(shapes)}


def imported(equation: str, arrays: dict[str, np.ndarray], shapes: dict[str, tuple[str, ...]] | None = None) -> Graph:
    node = helper.make_node("Einsum", list(arrays), ["y"], equation=equation)
    return import_onnx(model([node], arrays, shapes=shapes or {}))


def is_ours(graph: Graph) -> bool:
    return all(node.op is not ONNX for node in graph.operators)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_an_equation_means_what_numpy_says(equation: str) -> None:
    arrays = drawn(equation, EXTENTS)
    graph = imported(equation, arrays)
    assert is_ours(graph)
    expected = np.einsum(equation, *arrays.values())
    for level in (0, 2):
        (found,) = gk.compile(graph, opt_level=level)(*arrays.values())
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "equation", ["ibh,hnd->ibnd", "ibnd,jbnd->bnij", "ak,akh->ah", "ij,kn->i", "bihc,bjhc,bj->bhij"]
)
def test_extents_may_be_open(equation: str) -> None:
    terms = equation.partition("->")[0].split(",")
    names = {f"x{place}": tuple(f"extent_{letter}" for letter in term) for place, term in enumerate(terms)}
    graph = imported(equation, drawn(equation, EXTENTS), names)
    assert is_ours(graph)
    executable = gk.compile(graph)
    for extents in (EXTENTS, dict.fromkeys(EXTENTS, 1), {letter: 14 - extent for letter, extent in EXTENTS.items()}):
        arrays = drawn(equation, extents)
        expected = np.einsum(equation, *arrays.values())
        np.testing.assert_allclose(executable(*arrays.values())[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", [(2, 3, 4, 5), (2, 3, 5, 6)]),
        ("...ij,...jk", [(2, 1, 4, 5), (1, 3, 5, 6)]),
        ("b...d,d->b...", [(2, 3, 4, 5), (5,)]),
        ("...a->a...", [(2, 3, 4)]),
        ("i...->...", [(2, 3, 4)]),
        ("ij,ij->ij", [(1, 4), (3, 1)]),
        ("bij,bjk->bik", [(1, 4, 5), (3, 5, 6)]),
        ("ij,jk->ik", [(4, 1), (5, 6)]),
    ],
)
def test_axes_without_a_name_and_axes_of_one_element(equation: str, shapes: list[tuple[int, ...]]) -> None:
    random = np.random.default_rng(0)
    arrays = {f"x{k}": random.standard_normal(shape).astype(np.float32) for k, shape in enumerate(shapes)}
    graph = imported(equation, arrays)
    assert is_ours(graph)
    (found,) = gk.compile(graph)(*arrays.values())
    np.testing.assert_allclose(found, np.einsum(equation, *arrays.values()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes", "of"),
    [("ii->i", [(3, 3)], np.float32), ("ij,jk->ik", [(2, 3), (3, 4)], np.int64)],
)
def test_diagonals_and_integers_are_onnxruntimes(equation: str, shapes: list[tuple[int, ...]], of: type) -> None:
    arrays = {f"x{k}": np.arange(np.prod(shape)).reshape(shape).astype(of) for k, shape in enumerate(shapes)}
    graph = imported(equation, arrays)
    assert not is_ours(graph)
    np.testing.assert_array_equal(gk.compile(graph)(*arrays.values())[0], np.einsum(equation, *arrays.values()))


def test_names_whose_extents_nothing_makes_equal_are_onnxruntimes() -> None:
    """One of them may be 1, which is then that of the other."""
    arrays = {"x0": np.ones((2, 3), np.float32), "x1": np.ones((1, 3), np.float32)}
    node = helper.make_node("Einsum", list(arrays), ["y"], equation="ij,ij->j")
    made = model([node], arrays, shapes={"x0": ("n", 3), "x1": ("m", 3)})
    graph = import_onnx(made)
    assert not is_ours(graph)
    np.testing.assert_array_equal(gk.compile(graph)(*arrays.values())[0], run_onnxruntime(made, arrays)[0])
