"""Warp and block cooperation: shuffles, votes, matches, reductions, and lanes that went apart."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cuda_runs import clean, launch

LANES = np.arange(32)
EVERY = 0xFFFFFFFF


def results(body: str, threads: int = 32, arch: str = "sm_80") -> np.ndarray:
    """What each thread t stores of the expression or statements that give ``r``."""
    source = (
        'extern "C" __global__ void k(const int* x, int* y) {\n'
        "  int t = threadIdx.x, v = x[t], r = 0;\n"
        f"  {body}\n  y[t] = r;\n}}"
    )
    x, y = values(threads), np.zeros(threads, np.int32)
    clean(source, 1, threads, [x, y], arch=arch)
    return y


def values(threads: int = 32) -> np.ndarray:
    return (np.arange(threads) * 7 % 5 + np.arange(threads)).astype(np.int32)


@pytest.mark.parametrize(
    ("call", "source"),
    [
        ("__shfl_sync(~0u, v, 5)", np.full(32, 5)),
        ("__shfl_sync(~0u, v, t / 2)", LANES // 2),
        ("__shfl_up_sync(~0u, v, 3)", np.where(LANES < 3, LANES, LANES - 3)),
        ("__shfl_down_sync(~0u, v, 3)", np.where(LANES > 28, LANES, LANES + 3)),
        ("__shfl_xor_sync(~0u, v, 6)", LANES ^ 6),
        ("__shfl_down_sync(~0u, v, 3, 8)", np.where(LANES % 8 > 4, LANES, LANES + 3)),
        ("__shfl_up_sync(~0u, v, 2, 4)", np.where(LANES % 4 < 2, LANES, LANES - 2)),
        ("__shfl_sync(~0u, v, 9, 8)", LANES // 8 * 8 + 1),
        ("__shfl_xor_sync(~0u, v, 8, 8)", LANES),
    ],
)
def test_shuffles(call: str, source: np.ndarray) -> None:
    expected = values()[source]
    if "xor_sync(~0u, v, 8, 8)" in call:  # a lane of an earlier segment may be read, one of a later may not
        expected = values()[np.where(LANES & 8, LANES ^ 8, LANES)]
    assert results(f"r = {call};").tolist() == expected.tolist()


def test_votes_and_matches() -> None:
    odd = int(sum(1 << int(lane) for lane in LANES[values() % 2 == 1]))
    assert (results("r = __ballot_sync(~0u, v & 1);").view(np.uint32) == odd).all()
    assert (results("r = __any_sync(~0u, v == 9);") == (values() == 9).any()).all()
    assert (results("r = __all_sync(~0u, v >= 0);") == 1).all()
    same = [sum(1 << int(lane) for lane in LANES[values() % 3 == value]) for value in values() % 3]
    assert results("r = __match_any_sync(~0u, v % 3);").view(np.uint32).tolist() == same
    assert (results("int all; r = __match_all_sync(~0u, 7, &all); r = all ? r : 0;").view(np.uint32) == EVERY).all()
    assert (results("int all; r = __match_all_sync(~0u, v, &all);") == 0).all()


@pytest.mark.parametrize(
    ("name", "expected"), [("add", values().sum()), ("max", values().max()), ("min", values().min())]
)
def test_reductions_in_one_instruction(name: str, expected: int) -> None:
    assert (results(f"r = __reduce_{name}_sync(~0u, v);") == expected).all()


def test_masks_of_parts_of_a_warp() -> None:
    halves = "if (t < 16) r = __reduce_add_sync(0xffffu, v); else r = __reduce_add_sync(0xffff0000u, v);"
    expected = np.repeat([values()[:16].sum(), values()[16:].sum()], 16)
    assert results(halves).tolist() == expected.tolist()
    one = "unsigned m = 0xffu << (t / 8 * 8); r = __shfl_sync(m, v, t / 8 * 8);"
    assert results(one).tolist() == values()[LANES // 8 * 8].tolist()


def test_lanes_meet_at_one_mask_from_two_sides() -> None:
    """Both sides of a branch vote under the mask of the whole warp; lanes that ended are not waited for."""
    assert (results("if (t >= 20) return; r = __popc(__ballot_sync(~0u, t < 9));")[:20] == 9).all()
    loop = "for (int k = 0; k <= t % 4; ++k) r += k; __syncwarp(); r = __shfl_sync(~0u, r, 3);"
    assert (results(loop) == 6).all()


def test_last_warp_may_be_partly_filled() -> None:
    sums = results("r = v; for (int o = 4; o; o >>= 1) r += __shfl_xor_sync(__activemask(), r, o);", 40)
    assert sums[32:].tolist() == [int(values(40)[32:].sum())] * 8


def test_block_votes() -> None:
    assert (results("r = __syncthreads_count(v & 1);", 96) == int((values(96) & 1).sum())).all()
    assert (results("r = __syncthreads_and(v >= 0) + 2 * __syncthreads_or(v == 1000);", 96) == 1).all()


def test_branches_loops_and_switches() -> None:
    nested = """
    for (int k = 0; k < v; ++k) {
      if (k % 3 == 0) continue;
      if (k > 20) break;
      r += (k & 1) ? k : -1;
    }"""

    def meaning(v: int) -> int:
        return sum(k if k & 1 else -1 for k in range(min(v, 21)) if k % 3)

    assert results(nested).tolist() == [meaning(int(v)) for v in values()]
    cases = "switch (v % 6) { case 0: r = 7; break; case 1: r = v * v; break; case 2: r = -v; break; "
    cases += "case 3: r = v ^ 5; break; case 4: r = x[t ^ 1]; break; default: r = 1; }"
    table = [lambda v, n: 7, lambda v, n: v * v, lambda v, n: -v, lambda v, n: v ^ 5, lambda v, n: n, lambda v, n: 1]
    neighbours = values()[LANES ^ 1]
    expected = [table[v % 6](v, n) for v, n in zip(values().tolist(), neighbours.tolist(), strict=True)]
    assert results(cases).tolist() == expected


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("if (t < 8) r = __shfl_sync(0xffffu, v, 0);", "bad-shuffle"),
        ("r = __shfl_sync(0x0fu, v, 0);", "bad-shuffle"),
        ("if (t >= 16) return; r = __shfl_down_sync(~0u, v, 8);", "bad-shuffle"),
        ("if (t < 32) __syncthreads();", "divergent-barrier"),
        ("if (t & 1) __syncthreads(); else { __syncthreads(); y[0] = 1; }", "divergent-barrier"),
    ],
    ids=["lanes that never come", "not in its own mask", "reads a lane that ended", "half a block", "two barriers"],
)
def test_lanes_that_miss_each_other(body: str, kind: str) -> None:
    source = f'extern "C" __global__ void k(const int* x, int* y) {{ int t = threadIdx.x, v = x[t], r = 0; {body} y[t] = r; }}'
    assert kind in launch(source, 1, 64, [values(64), np.zeros(64, np.int32)]).kinds()
