"""Stores past the caches: which nests use them, and that every alignment of the output gives the same answer."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.dtypes import FLOAT32
from kernelgen.nest.nodes import Accumulate, Load, Nest, Store
from kernelgen.targets.cpu import TARGET, streaming
from kernelgen.targets.cpu.host import Host
from kernelgen.targets.cpu.module import detect_host
from tests.support.nests import I, J, block, buffer, call, loop, map_nest, output, run, softmax_nest

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
