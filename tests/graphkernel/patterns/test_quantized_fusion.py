"""Kernels of products of bytes go to the bytes that are made of their sums, and take nothing with them that is none of that."""

from __future__ import annotations

import pytest

import graphkernel as gk

WEIGHTS = ", ".join(map(str, [1, -2, 3, 4] * 1024))
STEPS = """
  floats: f32[32, 64] = Cast(sums, dst_type="float32")
  scaled: f32[32, 64] = Mul(floats, 0.25)
  near: f32[32, 64] = Round(scaled)
  low: f32[32, 64] = Maximum(near, 0.0)
  high: f32[32, 64] = Minimum(low, 255.0)
  bytes: u8[32, 64] = Cast(high, dst_type="uint8")
  further: i32[32, 64] = MatMulInteger(bytes, w, own_kernel=True)
"""
TO_BYTES = ["MatMulInteger", "Cast", "Mul", "Round", "Maximum", "Minimum", "Cast"]


def kernels(steps: str, results: str) -> list[list[str]]:
    """The operators of each kernel that is made of a product of bytes and ``steps`` behind its sums."""
    graph = gk.parse(f"""graph given(x: u8[32, 64]) {{
      const w: i8[64, 64] = [{WEIGHTS}]
      sums: i32[32, 64] = MatMulInteger(x, w, own_kernel=True){steps}
      return {results}
    }}""")
    made = gk.optimize(graph, opt_level=2, target="cpu").operators
    return [[node.op.name for node in kernel.body.operators] for kernel in made if kernel.body is not None]


NUMBERS_TWICE = """
  again: f32[32, 64] = Cast(bytes, dst_type="float32")
  grown: f32[32, 64] = Exp(again)
  greatest: f32[32] = ReduceMax(again, axis=(1,), keep_dims=False)
"""
NUMBERS_ADDED = """
  beside: f32[32, 64] = Cast(further, dst_type="float32")
  again: f32[32, 64] = Cast(bytes, dst_type="float32")
  both: f32[32, 64] = Add(beside, again)
"""


@pytest.mark.parametrize(
    ("steps", "results"),
    [
        (STEPS, "further = further"),
        (STEPS + NUMBERS_TWICE, "further = further, grown = grown, greatest = greatest"),
        (STEPS + NUMBERS_ADDED, "both = both"),
    ],
    ids=["a product", "a product and two that read numbers", "a product and a sum with it"],
)
def test_a_product_is_one_kernel_up_to_its_bytes_whoever_reads_them(steps: str, results: str) -> None:
    first, *_ = kernels(steps, results)
    assert first == TO_BYTES


def test_what_reduces_rows_on_the_way_is_no_step() -> None:
    rows = """
      floats: f32[32, 64] = Cast(sums, dst_type="float32")
      greatest: f32[32, 1] = ReduceMax(floats, axis=(1,), keep_dims=True)
      high: f32[32, 1] = Minimum(greatest, 255.0)
      bytes: u8[32, 1] = Cast(high, dst_type="uint8")
    """
    assert kernels(rows, "bytes = bytes")[0] == ["MatMulInteger"]
