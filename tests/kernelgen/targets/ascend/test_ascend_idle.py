"""No pass over a tile that does nothing: what is used twice is loaded once, copies that are only read and spread rows go."""

from __future__ import annotations

import re

import kernel_examples as examples
import pytest

import kernelgen
from kernelgen.ascendc.instructions import Call
from kernelgen.samples.inputs import draw
from kernelgen.targets.ascend.lower.program.redundant_copies import without_idle
from kernelgen.targets.ascend.lower.program.writer import Program, Writer
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.verify import Status, verify


@pytest.mark.parametrize("desc", [examples.softmax(4096, 1024), examples.layer_norm(4096, 768)], ids=lambda d: d.name)
def test_rows_are_loaded_once_and_what_each_row_has_one_of_is_read_with_stride_zero(desc):
    source = kernelgen.compile(desc, "ascend").source
    loads = re.findall(r"DataCopyPad\(in_\w+\[.*?\], (\w+_gm\[.*?\])", source)
    assert len(loads) == len(set(loads)) > 0
    assert not re.search(r"^ *Copy\(", source, re.M)
    assert not re.search(r"Muls\(.*, 1\.0f, ", source)


def test_softmax_takes_less_time_than_with_idle_passes():
    """In the simulator's cycles: 90,700 with two loads, two copies and two spread tiles."""
    kernel = kernelgen.compile(examples.softmax(4096, 1024), "ascend")
    kernel(*draw(kernel.desc))
    report = kernel.entry.reports[-1]  # pyright: ignore[reportAttributeAccessIssue]
    assert report.pipeline_cycles < 70_000
    assert report.gm_bytes < 1.01 * 2 * 4096 * 1024 * 4


@pytest.mark.parametrize("columns", [1, 7, 63, 64, 65, 100, 128, 2040, 2048, 3000])
@pytest.mark.parametrize("make", [examples.softmax, examples.layer_norm], ids=["softmax", "layer_norm"])
def test_rows_of_all_lengths_are_right(make, columns):
    record = verify(make(50, columns), "ascend")
    assert (record.status, record.message) == (Status.PASSED, "")


@pytest.mark.parametrize(
    "make", [examples.momentum, examples.assigned_twice, examples.exchange], ids=lambda f: f.__name__
)
def test_what_is_assigned_anew_keeps_its_copies(make):
    record = verify(make(), "ascend")
    assert (record.status, record.message) == (Status.PASSED, "")


def calls(write) -> list[str]:
    """The operations that are left of a straight piece over three tiles."""
    writer = Writer()
    tiles = [writer.tile("t", FLOAT32, 64) for _ in range(3)]
    write(writer, *tiles)
    program = Program(tuple(writer.tiles.values()), (), tuple(writer.blocks[0]))
    return [part.operation for part in without_idle(program).body if isinstance(part, Call)]


def copy(writer, target, source):
    writer.emit("Muls", dst=target, src=source, scalar=1.0, count=64)


def test_a_copy_that_is_only_read_goes():
    def write(writer, a, b, c):
        writer.emit("Duplicate", dst=a, scalar=2.0, count=64)
        copy(writer, b, a)
        writer.emit("Add", dst=c, first=b, second=b, count=64)

    assert calls(write) == ["Duplicate", "Add"]


def test_a_copy_stays_where_its_source_changes_before_it_is_read():
    def write(writer, a, b, c):
        copy(writer, b, a)
        writer.emit("Duplicate", dst=a, scalar=2.0, count=64)
        writer.emit("Add", dst=c, first=a, second=b, count=64)

    assert calls(write) == ["Muls", "Duplicate", "Add"]


def test_a_copy_stays_where_the_instruction_that_reads_it_writes_the_source():
    def write(writer, a, b, c):
        copy(writer, b, a)
        writer.emit("Add", dst=a, first=c, second=b, count=64)

    assert calls(write) == ["Muls", "Add"]


def test_a_copy_stays_where_it_is_written_again():
    def write(writer, a, b, c):
        copy(writer, b, a)
        writer.emit("Add", dst=b, first=b, second=c, count=64)
        writer.emit("Exp", dst=c, src=b, count=64)

    assert calls(write) == ["Muls", "Add", "Exp"]


def test_a_product_with_another_number_stays():
    def write(writer, a, b, c):
        writer.emit("Muls", dst=b, src=a, scalar=2.0, count=64)
        writer.emit("Add", dst=c, first=b, second=b, count=64)

    assert calls(write) == ["Muls", "Add"]
