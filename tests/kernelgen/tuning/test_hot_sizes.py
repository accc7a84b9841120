"""Kernels for hot sizes are compiled when asked, used for these sizes only, and give the same results."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import softmax

from kernelgen.driver import compile
from kernelgen.errors import ArgumentError
from kernelgen.tensor.dims import sym
from kernelgen.tuning.hot_sizes import HotSizes


@pytest.fixture(scope="module")
def rows() -> HotSizes:
    return HotSizes(compile(softmax(sym("N"), sym("M"))))


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_calls_are_counted_by_size(rows: HotSizes) -> None:
    for shape in ((2, 3), (4, 5), (4, 5), (6, 7)):
        rows(drawn(*shape))
    assert rows.hottest(2) == ({"N": 4, "M": 5}, {"N": 2, "M": 3})
    assert not rows.special


def test_a_hot_size_gets_its_own_kernel(rows: HotSizes) -> None:
    hot = rows.specialised({"N": 4, "M": 5})
    assert [kernel.desc.symbols for kernel in hot.special.values()] == [()]
    assert not rows.special
    for shape in ((4, 5), (5, 4)):
        np.testing.assert_allclose(hot(drawn(*shape))[0], rows(drawn(*shape))[0], rtol=1e-6)


def test_the_own_kernel_is_called_for_its_size_only(rows: HotSizes, monkeypatch: pytest.MonkeyPatch) -> None:
    hot = rows.specialised({"N": 4, "M": 5})
    ((_, special),) = hot.special.items()
    ran: list[tuple[int, ...]] = []
    right = type(special).__call__
    monkeypatch.setattr(
        type(special),
        "__call__",
        lambda kernel, x, out=None: ran.append(kernel.desc.symbols) or right(kernel, x, out=out),
    )
    hot(drawn(4, 5))
    hot(drawn(4, 6))
    assert ran == [(), ("M", "N")]


def test_results_go_where_out_says(rows: HotSizes) -> None:
    hot, out = rows.specialised({"N": 4, "M": 5}), np.zeros((4, 5), np.float32)
    assert hot(drawn(4, 5), out=(out,))[0] is out
    np.testing.assert_allclose(out.sum(axis=1), 1, rtol=1e-6)


def test_calls_that_do_not_fit_are_errors_and_not_counted(rows: HotSizes) -> None:
    before = rows.calls.total()
    with pytest.raises(ArgumentError, match="rank 1"):
        rows(drawn(4))
    assert rows.calls.total() == before


@pytest.mark.parametrize("sizes", [{"N": 4}, {"N": 4, "M": 5, "K": 6}])
def test_sizes_are_those_of_the_symbols(rows: HotSizes, sizes: dict[str, int]) -> None:
    with pytest.raises(ArgumentError, match="has the symbols M, N"):
        rows.specialised(sizes)
