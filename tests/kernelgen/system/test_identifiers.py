"""Given names are data: whatever they hold, the text that compilers read is made of identifiers, on every target."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import Writer, constant, softmax, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.document import map_tensors
from kernelgen.composite.link import linked, unlinked
from kernelgen.composite.write import dump_desc
from kernelgen.errors import UnsupportedError
from kernelgen.system.identifiers import MOST, beside, comment, identifier, identifiers
from kernelgen.targets.gpu.dialects.names import TAKEN, spelled
from kernelgen.tensor.dims import sym

MARK = "injected"
HOSTILE = (
    f'k\nmodule asm ".globl {MARK}"',
    f"k\r\ndefine void @{MARK}() {{ ret void }}",
    f"k */ __global__ void {MARK}() {{}} /*",
    f"k\\\n__global__ void {MARK}() {{}}",
    f"k??/\n__global__ void {MARK}() {{}}",
    f"k; {MARK}();",
    f"__import__('os').abort(), {MARK}",
    f"x, {MARK}",
    f"k\x00{MARK}",
    f"k\u2028{MARK}\u0085",
    f"\u202ek{MARK}",
    f"k\ud800{MARK}",
    f'"{MARK}"',
    f"../../{MARK}",
    f"%{MARK}",
    f"{MARK} " * 100,
    "",
    " ",
    "0",
    "\n",
    "é",
    "ℌ",
    "x²",
)
WORDS = (
    "int",
    "for",
    "lambda",
    "None",
    "np",
    "call",
    "kernel",
    "define",
    "__launch_bounds_",
    "__global__",
    "x_",
    "int_",
)
TARGETS = ("cpu", "python", "gpu", "gpu:hip", "gpu:opencl", "ascend", "ascend:910A")


def _named(name: str, kernel: str) -> KernelDesc:
    """A kernel whose name and whose tensors' names begin so: input, temporary and output."""
    w, x = Writer(), tensor("x", 8, 64)
    y = w.op("Exp", w.op("Add", x, constant(1.0), shape=(8, 64)), shape=(8, 64))
    desc = w.desc(kernel, (x,), y)
    names = {"x": name, "t0": f"{name}_", "t1": f"{name}__"}
    return linked(map_tensors(unlinked(desc), lambda each: replace(each, name=names.get(each.name, each.name))))


@pytest.mark.parametrize("name", [*HOSTILE, *WORDS])
def test_an_identifier_is_of_the_closed_alphabet_bounded_and_stays_one(name: str) -> None:
    found = identifier(name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", found)
    assert len(found) <= MOST
    assert identifier(found) == found


def test_different_names_stay_different() -> None:
    names = [f"{name}{end}" for name in (*HOSTILE, *WORDS) for end in ("", "_", " ", "\n", "__")]
    assert len({identifier(name) for name in names}) == len(set(names))
    for taken in (TAKEN, frozenset({"x", "int"})):
        assert len({beside(name, taken) for name in names}) == len(set(names))
        assert not {beside(name, taken) for name in names} & taken
    assert len({spelled(name) for name in names}) == len(set(names))
    assert not any(spelled(name).startswith("__") for name in names)


def test_a_name_that_is_anothers_identifier_is_refused() -> None:
    with pytest.raises(ValueError, match="both"):
        identifiers(["a b", identifier("a b")])
    with pytest.raises(UnsupportedError, match="defective-input"):
        kernelgen.compile(
            linked(
                map_tensors(
                    unlinked(_named("x", "k")),
                    lambda t: replace(t, name={"x": "a b", "x_": identifier("a b")}.get(t.name, t.name)),
                )
            )
        )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_is_one_line_that_ends(text: str) -> None:
    line = comment(text)
    assert len(f"a{line}b".splitlines()) == 1
    assert line.isascii()
    assert "*/" not in line
    assert not line.endswith(("\\", "??/"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_given_name_reaches_a_compiler(name: str, target: str) -> None:
    """The text is that of harmless names, once names are taken out of it: not a line, not a word more."""
    text = kernelgen.compile(_named(name, name), target).source
    assert text.isascii()
    assert _shape(text) == _shape(kernelgen.compile(_named("xx", "kk"), target).source)


def _shape(text: str) -> list[str]:
    """The lines with every word that may be a name as one letter."""
    return [re.sub(r"[A-Za-z0-9_.]+", "w", line) for line in text.splitlines()]


@pytest.mark.parametrize("target", ["cpu", "python", "ascend"])
@pytest.mark.parametrize("name", [*HOSTILE, *WORDS])
def test_kernels_with_any_names_compute_the_same(name: str, target: str) -> None:
    desc = _named(name, name)
    kernel = kernelgen.compile(desc, target)
    x = np.linspace(-1, 1, 512, dtype=np.float32).reshape(8, 64)
    np.testing.assert_allclose(kernel(x)[0], np.exp(x + 1), rtol=1e-5)
    assert kernel.desc is desc  # the given names are where people look for them
    assert dump_desc(kernel.desc)["op"] == name


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WORDS)
def test_words_of_languages_are_names_too(name: str, target: str) -> None:
    assert kernelgen.compile(_named(name, name), target).source


def test_names_that_are_identifiers_stay_as_they_are() -> None:
    assert identifier("Fused_Mul_Add_split_1234567890") == "Fused_Mul_Add_split_1234567890"
    assert "x.1" not in kernelgen.compile(softmax(), "gpu").source


@pytest.mark.parametrize("name", ["é", "x²", "a b", "a\n", "1", ""])
def test_a_symbol_is_an_identifier(name: str) -> None:
    with pytest.raises(ValueError, match="not a symbol name"):
        sym(name)
