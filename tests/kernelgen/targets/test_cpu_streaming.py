"""Stores past the caches: which nests use them, and that every alignment of the output gives the same answer."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    For,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Store,
    ValueIndex,
)
from kernelgen.targets.cpu import TARGET
from kernelgen.targets.cpu.loops import streaming
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import FLOAT32, INT64
from tests.support.nests import I, J, block, buffer, call, local, loop, map_nest, output, run, softmax_nest

LARGE = 1 << 22
HOST = Host("x86-64-v3", frozenset(("avx2", "fma", "f16c")))


def test_only_large_outputs_that_are_not_read_again_stream() -> None:
    assert streaming.streamed_buffer(map_nest(lambda a: call("neg", a), LARGE, FLOAT32), HOST) == "y"
    assert streaming.streamed_buffer(map_nest(lambda a: call("neg", a), LARGE - 1, FLOAT32), HOST) is None
    x, y = buffer("x", LARGE), output("y", LARGE)
    twice = block(loop(I, LARGE, Store(y, (I,), Load(x, (I,)))), loop(J, LARGE, Store(y, (J,), Load(y, (J,)))))
    assert streaming.streamed_buffer(Nest("twice", (), (x, y), twice), HOST) is None
    sums = block(loop(I, LARGE, Accumulate(y, (I,), "add", Load(x, (I,)))))
    assert streaming.streamed_buffer(Nest("sums", (), (x, y), sums), HOST) is None
    assert (
        streaming.streamed_buffer(map_nest(lambda a: call("neg", a), LARGE, FLOAT32), Host("x86-64", frozenset()))
        is None
    )


@pytest.mark.skipif(not detect_host().has_streaming, reason="this processor has no stores past the caches")
def test_the_text_shows_streaming_stores_and_a_fence() -> None:
    text = TARGET.emit(map_nest(lambda a: call("neg", a), LARGE, FLOAT32))
    assert "!nontemporal !0" in text
    assert "llvm.x86.sse.sfence" in text


@pytest.fixture
def streams_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every output is large enough; the nests of these tests would otherwise store normally and prove nothing."""
    if not detect_host().has_streaming:
        pytest.skip("this processor has no streaming stores of vectors")
    monkeypatch.setattr(streaming, "MIN_STREAMED_BYTES", 0)
    monkeypatch.setattr(streaming, "MIN_MOVED_BYTES", 0)
    assert "!nontemporal" in TARGET.emit(map_nest(lambda a: call("neg", a), 5003, FLOAT32))


@pytest.mark.usefixtures("streams_everything")
@pytest.mark.parametrize("shift", [0, 1, 3, 4, 7, 8, 15])
@pytest.mark.parametrize("extent", [4096, 4097, 5003])
def test_every_alignment_gives_the_same_answer(shift: int, extent: int) -> None:
    x = np.random.default_rng(0).standard_normal(extent).astype(np.float32)
    room = np.full(extent + 64, 7, np.float32)
    start = -room.ctypes.data % 64 // 4 + shift
    run(map_nest(lambda a: call("neg", a), extent, FLOAT32), x, room[start : start + extent])
    np.testing.assert_array_equal(room[start : start + extent], -x)
    assert (room[:start] == 7).all()
    assert (room[start + extent :] == 7).all()


@pytest.mark.usefixtures("streams_everything")
def test_rows_that_are_not_aligned_to_each_other() -> None:
    x, y = np.random.default_rng(0).standard_normal((9, 2051)).astype(np.float32), np.zeros((9, 2051), np.float32)
    run(softmax_nest(9, 2051), x, y)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def _rows_together(rows: Dim, columns: Dim, count: int) -> Nest:
    """``y = -x``, ``count`` rows in one vector loop."""
    x, y = buffer("x", rows, columns), output("y", rows, columns)
    below = [I if k == 0 else ix.add(I, Num(k)) for k in range(count)]
    body = [Store(y, (row, J), call("neg", Load(x, (row, J)))) for row in below]
    symbols = tuple(str(dim) for dim in (rows, columns) if not isinstance(dim, int))
    turns = For("i", Num(0), ix.from_dim(rows), block(loop(J, columns, *body)), LoopKind.SERIAL, count)
    return Nest("rows", symbols, (x, y), block(turns))


@pytest.mark.usefixtures("streams_everything")
@pytest.mark.parametrize("shift", [0, 1, 5, 8])
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("columns", [2048, 2049, 2051, 2052, 2056, 2064])
def test_rows_that_are_stored_together_need_not_be_aligned_together(columns: int, count: int, shift: int) -> None:
    x, room = np.random.default_rng(0).standard_normal((8, columns)).astype(np.float32), _room(8 * columns, shift)
    y = room.reshape(8, columns)
    run(_rows_together(8, columns, count), x, y)
    np.testing.assert_array_equal(y, -x)


@pytest.mark.usefixtures("streams_everything")
@pytest.mark.parametrize("columns", [2048, 2049, 2052, 2064])
def test_rows_of_any_length_that_are_stored_together(columns: int) -> None:
    nest = _rows_together(8, sym("N"), 4)
    assert "!nontemporal" in TARGET.emit(nest)
    x, y = np.random.default_rng(0).standard_normal((8, columns)).astype(np.float32), _room(8 * columns, 3)
    run(nest, x, y.reshape(8, columns), symbols=(columns,))
    np.testing.assert_array_equal(y.reshape(8, columns), -x)


@pytest.mark.usefixtures("streams_everything")
def test_rows_stream_together_exactly_where_they_can() -> None:
    assert "!nontemporal" in TARGET.emit(_rows_together(8, 2048, 4))
    assert "!nontemporal" not in TARGET.emit(_rows_together(8, 2049, 4))


@pytest.mark.usefixtures("streams_everything")
def test_a_row_beside_a_place_that_data_decides_goes_through_the_caches() -> None:
    x, at, y = buffer("x", 4096), buffer("at", 1, dtype=INT64), output("y", 9000)
    moved = ix.add(ValueIndex(Ref("place", INT64)), I)
    stores = (Store(y, (I,), Load(x, (I,))), Store(y, (moved,), Load(x, (I,))))
    nest = Nest("data", (), (x, at, y), block(Let("place", Load(at, (Num(0),))), loop(I, 4096, *stores)))
    values, out = np.random.default_rng(0).standard_normal(4096).astype(np.float32), _room(9000, 2)
    run(nest, values, np.array([4097]), out)
    np.testing.assert_array_equal(out[4097 : 4097 + 4096], values)


@pytest.mark.usefixtures("streams_everything")
@pytest.mark.parametrize("streamed", ["y", "sums"])
def test_short_rows_and_those_of_no_stream_keep_their_sums_in_registers(streamed: str) -> None:
    held, sums = local("held", 32), output("sums", sym("N"), 9)
    x, y = buffer("x", sym("N")), output("y", sym("N"), *((64,) if streamed == "y" else ()))
    begun = (Alloc(held), loop(J, 32, Store(held, (J,), Literal(0.5, FLOAT32))))
    row = (*begun, loop(J, 9, Store(sums, (I, J), Load(held, (J,)))))
    to = (I, Num(0)) if streamed == "y" else (I,)
    rows = For("i", Num(0), ix.from_dim(sym("N")), block(*row, Store(y, to, Load(x, (I,)))), LoopKind.SERIAL)
    nest = Nest("held", ("N",), (x, sums, y), block(rows))
    assert streaming.streamed_buffer(nest, detect_host()) == streamed
    text = TARGET.emit(nest)
    places = set(re.findall(r"(%\w+) = getelementptr float, ptr %held", text))
    masked = set(re.findall(r"masked\.load\.\w+\.p0\(ptr align \d+ (%\w+)", text))
    assert not places & masked, "a masked load keeps an array of sums in memory"
    values, found, out = np.random.default_rng(0).standard_normal(70).astype(np.float32), _room(630, 1), _room(4480, 5)
    out = out.reshape(70, 64) if streamed == "y" else out[:70]
    run(nest, values, found.reshape(70, 9), out, symbols=(70,))
    assert (found == 0.5).all()
    np.testing.assert_array_equal(out[:, 0] if streamed == "y" else out, values)


def _room(elements: int, shift: int) -> np.ndarray:
    """An array of float32 that starts ``shift`` elements behind a cache line."""
    room = np.zeros(elements + 64, np.float32)
    start = -room.ctypes.data % 64 // 4 + shift
    return room[start : start + elements]
