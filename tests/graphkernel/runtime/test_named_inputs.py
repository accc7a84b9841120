"""Inputs by name: keywords, mappings, and what is said of names that are wrong, twice there or missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.errors import InputError

TEXT = """graph net("gpu_0/data_0": f32[N, 4], mask: f32[4], "out": f32[]) {
  a: f32[N, 4] = Mul("gpu_0/data_0", mask)
  b: f32[N, 4] = Sub(a, "out")
  return "gpu_0/softmax_1" = b, a = a
}"""
EXE = gk.compile(gk.parse(TEXT))
X, MASK, OUT = np.arange(8, dtype=np.float32).reshape(2, 4), np.full(4, 3, np.float32), np.float32(1)
EXPECTED = X * 3 - 1


def test_names_and_types_are_told() -> None:
    assert EXE.input_names == ("gpu_0/data_0", "mask", "out")
    assert EXE.output_names == ("gpu_0/softmax_1", "a")
    assert str(EXE.inputs) == "{'gpu_0/data_0': f32[N, 4], 'mask': f32[4], 'out': f32[]}"
    assert [str(found) for found in EXE.outputs.values()] == ["f32[N, 4]", "f32[N, 4]"]


def test_outputs_that_nobody_named_are_numbered() -> None:
    one = gk.parse("graph g(x: f32[4]) { return x }")
    two = gk.parse("graph g(x: f32[4]) { return x, x }")
    assert one.output_names == ("output",)
    assert two.output_names == gk.optimize(two).output_names == ("output_0", "output_1")


@pytest.mark.parametrize("spelling", ["gpu_0/data_0", "gpu_0.data_0", "gpu_0_data_0", "/gpu_0/data_0"])
def test_a_mapping_may_be_in_any_order_and_spelling(spelling: str) -> None:
    assert (EXE({"out": OUT, spelling: X, "mask": MASK})[0] == EXPECTED).all()


def test_keywords_stand_for_the_inputs_that_are_not_given_in_their_place() -> None:
    exe = gk.compile(gk.parse(TEXT.replace('"out"', "shift")))
    for found in (exe(X, MASK, OUT), exe(X, shift=OUT, mask=MASK), exe(gpu_0_data_0=X, mask=MASK, shift=OUT)):
        assert (found[0] == EXPECTED).all()
    into = (np.empty_like(X), np.empty_like(X))
    exe(X, mask=MASK, shift=OUT, out=into)
    assert (into[0] == EXPECTED).all()


@pytest.mark.parametrize(("positional", "keywords", "message"), [
    ((X,), {"maks": MASK}, r"no input is called maks \(did you mean 'mask'\?\); inputs: gpu_0/data_0, mask, out"),
    ((X, MASK), {"mask": MASK}, "input mask is given twice, in its place and by its name"),
    (({"gpu_0/data_0": X, "gpu_0.data_0": X},), {}, "input gpu_0/data_0 is given twice"),
    ((X,), {"mask": MASK}, "input out is missing"),
    (({"mask": MASK},), {}, "input gpu_0/data_0, out is missing"),
    (({"mask": MASK}, X), {}, "one mapping of all inputs, or arrays and keywords, not both"),
    (({"gpu_0/data_0": X, "out": OUT},), {"mask": MASK}, "one mapping of all inputs, or arrays and keywords, not both"),
    ((X, MASK, OUT, X), {"mask": MASK}, "takes 3 inputs .*, got 4 and keywords"),
])  # fmt: skip
def test_wrong_names_are_told(positional: tuple[Any, ...], keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EXE(*positional, **keywords)


def test_a_saved_executable_keeps_the_names(tmp_path: Path) -> None:
    EXE.save(tmp_path / "net.gkx")
    again = gk.load_compiled(tmp_path / "net.gkx")
    assert (again.inputs, again.outputs) == (EXE.inputs, EXE.outputs)
    assert (again({"out": OUT, "gpu_0.data_0": X, "mask": MASK})[0] == EXPECTED).all()


def test_arrays_that_do_not_fit_are_told_by_the_models_name() -> None:
    with pytest.raises(InputError, match=r"input gpu_0/data_0 is f32\[N, 4\], got shape \(2, 5\)"):
        EXE(np.ones((2, 5), np.float32), MASK, OUT)
