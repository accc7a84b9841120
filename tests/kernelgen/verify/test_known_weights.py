"""Kernels that are told of their weights are verified too: which inputs those are, what records say, which faults show."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from operator_kernels import Given, one
from typer.testing import CliRunner

from kernelgen.__main__ import app
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.write import dump_desc
from kernelgen.driver import compile
from kernelgen.enclosure.table import ON_FIXED_POINT, RULES
from kernelgen.kernel import Kernel
from kernelgen.native.call import NativeKernel
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Literal, LoopKind, Num
from kernelgen.plan import CpuPlan, Plan, VectorUnit
from kernelgen.samples import trials
from kernelgen.samples.inputs import draw
from kernelgen.tensor.dtypes import FLOAT16, INT32
from kernelgen.transforms.cpu import arrays_of_values, prepare_constants, row_digits, stored_sums
from kernelgen.transforms.cpu import digit_sums as sums
from kernelgen.verify import Status, verify
from kernelgen.verify.guard import between_fences
from kernelgen.verify.known_weights import roundings_of, weights_of
from kernelgen.verify.worker_diary import Diary

F = "float32"
BY_DIGITS = Plan(cpu=CpuPlan(unit=VectorUnit(adds_bytes=True)))


def stored(bits: int, groups: int, terms: int, columns: int, rows: int = 1) -> KernelDesc:
    """Rows times weights of so many ``bits``, in groups of so many terms, with scales and zero points."""
    weights: Given = ("uint8" if bits == 4 else "int8", (groups, terms * bits // 8, columns))
    each: list[Given] = [(F, (groups, columns))] * 2
    given: list[Given] = [(F, (rows, groups * terms)), weights, *each]
    return one("StoredMatMul", given, [(F, (rows, columns))], bits=bits * (bits == 4))


NIBBLES, BYTES, BLOCKS = stored(4, 2, 32, 21), stored(8, 1, 300, 33), stored(8, 1, 64, 300)
PRODUCT = one("MatMul", [(F, (1, 70)), (F, (70, 300))], [(F, (1, 300))])


def told(desc: KernelDesc, target: str, plan: Plan = BY_DIGITS, constants: tuple[int, ...] = ()) -> Kernel:
    """What all verified kernels here are compiled by: as on a processor that adds products of bytes."""
    return compile(desc, target, plan, constants)


def untold(desc: KernelDesc, target: str, plan: Plan = BY_DIGITS, constants: tuple[int, ...] = ()) -> Kernel:
    """The same, but nothing is known early."""
    return compile(desc, target, plan)


# ---------------------------------------------------------------- which inputs


def layers(residual: bool = False) -> KernelDesc:
    """Two products behind each other, with a bias between them, perhaps with what the first one read added."""
    w = Writer()
    x, first, bias, second = tensor("x", 4, 8), tensor("first", 8, 8), tensor("bias", 8), tensor("second", 2, 8, 4)
    hidden = w.op("Add", w.op("MatMul", x, first, shape=(4, 8)), bias, shape=(4, 8))
    hidden = w.op("Add", hidden, x, shape=(4, 8)) if residual else hidden
    square = w.op("Reshape", w.op("ReduceSum", second, shape=(8, 4), axis=(0,)), shape=(8, 4))
    return w.desc("layers", (x, first, bias, second), w.op("MatMul", hidden, square, shape=(4, 4)))


def attention() -> KernelDesc:
    """Scores of a row with itself: nothing is a weight."""
    w, x = Writer(), tensor("x", 4, 8)
    return w.desc("attention", (x,), w.op("MatMul", x, x, shape=(4, 4), transpose_b=True))


def updated() -> KernelDesc:
    """A product that is stored in place."""
    w = Writer()
    x, weights, y = tensor("x", 4, 8), tensor("weights", 8, 8), tensor("y", 4, 8)
    stored = w.op("Assign", y, w.op("MatMul", x, weights, shape=(4, 8)), shape=(4, 8))
    return w.desc("updated", (x, weights, y), stored)


@pytest.mark.parametrize(
    ("desc", "weights"),
    [(NIBBLES, (1, 2, 3)), (PRODUCT, (1,)), (layers(), (1, 3)), (layers(residual=True), (1, 3)), (attention(), ())],
    ids=["stored", "product", "layers", "with a residual", "attention"],
)
def test_weights_are_what_products_take_behind_their_rows(desc: KernelDesc, weights: tuple[int, ...]) -> None:
    assert weights_of(desc) == weights


def test_networks_know_nothing_early_of_kernels_that_update_inputs() -> None:
    desc = updated()
    assert desc.updates
    assert weights_of(desc) == ()


# ---------------------------------------------------------------- what is asked of such kernels


def test_all_is_asked_of_both_kernels() -> None:
    alone, both = verify(NIBBLES, compiler=untold), verify(NIBBLES, compiler=told, checked=True)
    assert both.status is Status.PASSED
    assert both.weights == ("x1", "x2", "x3")
    assert {"kernel", "kernel, weights known"} <= both.checked.keys()
    assert {"bounds", "parallel", "vector"} <= set(both.checked["kernel, weights known"])
    assert both.features.keys() > alone.features.keys()
    assert any("byte_dot" in word for word in both.features)
    assert not any("byte_dot" in word for word in alone.features)
    assert verify(NIBBLES, "python").weights == verify(attention()).weights == ()


def test_weights_that_are_given_out_again_pass_the_checker() -> None:
    """Their transposition is laid out before all calls as well, and copied by a loop that holds no hints."""
    w = Writer()
    x, weights = tensor("x", 1, 6, dtype=FLOAT16), tensor("weights", 2, 3, 5, dtype=FLOAT16)
    product = w.op("StoredMatMul", x, weights, shape=(1, 5), bits=0)
    desc = w.desc("both", (x, weights), product, w.op("Transpose", weights, shape=(2, 5, 3), perm=(0, 2, 1)))
    record = verify(desc, checked=True)
    assert (record.status, record.weights) == (Status.PASSED, ("weights",)), record.message


def test_the_record_of_the_command_says_so(tmp_path: Path) -> None:
    file, out = tmp_path / "stored.info", tmp_path / "out.json"
    file.write_text(json.dumps(dump_desc(BYTES)))
    command = ["verify", str(file), "--jobs", "1", "--check", "--json", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    (record,) = json.loads(out.read_text())["records"]
    assert record["weights"] == ["x1", "x2", "x3"]
    assert record["checked"]["kernel, weights known"]


def test_stored_bytes_are_of_all_kinds() -> None:
    for desc in (NIBBLES, BYTES):
        for drawn in trials(desc):
            kinds = np.unique(drawn[1].view(np.uint8) // 16)
            assert len(kinds) == 16


def test_only_kernels_with_digits_round_rows_as_fixed_point() -> None:
    told_of_weights = partial(told, target="cpu", constants=(1, 2, 3))
    assert roundings_of(told_of_weights(NIBBLES)) is ON_FIXED_POINT
    for kernel in (told(NIBBLES, "cpu"), told_of_weights(stored(4, 2, 32, 21, rows=3)), lambda: None):
        assert roundings_of(kernel) is RULES


# ---------------------------------------------------------------- what shows


def of_found(change: Callable[[stored_sums.StoredSum], stored_sums.StoredSum]) -> Callable[..., object]:
    """Finds sums, and changes them."""

    def changed(*given: Any) -> object:
        found = stored_sums.stored_sum(*given)
        return found and change(found)

    return changed


def of_first_group(found: stored_sums.StoredSum) -> stored_sums.StoredSum:
    group = next(iter(ix.variables(found.stored.index[0])))
    return replace(found, scales=tuple(ix.substitute_in(each, {group: Num(0)}) for each in found.scales))


def of_first_block(arrays: Mapping[arrays_of_values.Array, Any], kind: LoopKind) -> object:
    first = {arrays_of_values.dim_name(0): Num(0)}
    changed = {replace(array, value=ix.substitute_in(array.value, first)): made for array, made in arrays.items()}
    return arrays_of_values.fills(changed, kind)


def swapped(digits: tuple[Any, ...], unit: Any) -> object:
    return row_digits.joined((digits[0], digits[2], digits[1]), unit)


def without_highest(digits: tuple[Any, ...], unit: Any) -> object:
    return row_digits.joined((*digits[:2], Literal(0, INT32)), unit)


def but_for_the_last(row: row_digits.Row, *more: Any) -> object:
    return row_digits.fills(replace(row, pieces=row.pieces - 1), *more)


def backwards(piece: Any, word: Any, place: int, words: int) -> object:
    return row_digits.term_at(piece, word, 3 - place, words)


FAULTS: Mapping[str, tuple[KernelDesc, object, str, object]] = {
    "digits change places": (NIBBLES, sums, "joined", swapped),
    "the highest digit is lost": (BYTES, sums, "joined", without_highest),
    "another middle": (NIBBLES, stored_sums.StoredSum, "middle", 7),
    "a bit of the neighbour": (NIBBLES, sums, "LOW_NIBBLES", 0x1F1F1F1F),
    "a unit that is too small": (BYTES, row_digits, "SPARE", 2.0**-3),
    "scales of the first group": (NIBBLES, sums, "stored_sum", of_found(of_first_group)),
    "no zero points": (BYTES, sums, "stored_sum", of_found(lambda found: replace(found, zeros=None))),
    "digits of the last piece": (BYTES, sums, "fills", but_for_the_last),
    "terms that fill no piece": (BYTES, sums._Sum, "_rest", lambda self: []),
    "weights of a word backwards": (NIBBLES, sums, "term_at", backwards),
    "words of the first block": (BLOCKS, prepare_constants, "fills", of_first_block),
    "panels of the first block": (PRODUCT, prepare_constants, "fills", of_first_block),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_that_show_only_where_weights_are_known(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    desc, where, name, wrong = FAULTS[fault]
    monkeypatch.setattr(where, name, wrong)
    assert verify(desc, compiler=untold).status is Status.PASSED
    record = verify(desc, compiler=told)
    assert (record.status, record.reason) == (Status.FAILED, "wrong-answer")
    assert record.message.startswith("x1, x2, x3 known" if desc is not PRODUCT else "x1 known")


@pytest.mark.parametrize("desc", [NIBBLES, BYTES, BLOCKS, PRODUCT], ids=["nibbles", "bytes", "blocks", "product"])
def test_the_untouched_generator_passes(desc: KernelDesc) -> None:
    for seed in range(3):
        record = verify(desc, seed=seed, compiler=told)
        assert (record.status, record.message) == (Status.PASSED, "")


def test_what_is_run_before_all_calls_lies_between_fences_too() -> None:
    kernel = told(PRODUCT, "cpu", constants=(1,))
    before, inputs = kernel.preparation, draw(PRODUCT)
    assert before is not None

    def beside(arrays: tuple[Any, ...], symbols: tuple[int, ...]) -> None:
        before.entry(arrays, symbols)
        if arrays[-1].base is not None:  # not on ordinary arrays, where nobody would see it
            np.lib.stride_tricks.as_strided(arrays[-1].reshape(-1)[-1:], (2,), (4,))[1] = 1

    diary, outputs = Diary.new(), [np.empty((1, 300), np.float32)]
    try:
        count, fault = between_fences(kernel, inputs, outputs, diary)
        assert (count, fault) == (20, "")
        wrong = replace(kernel, preparation=NativeKernel(before.signature, beside))
        fault = between_fences(wrong, inputs, outputs, diary)[1]
    finally:
        diary.remove()
    assert fault.startswith("something was written beside prepared")
