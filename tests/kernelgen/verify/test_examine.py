"""The checker inside of the verifier: what records say, and that a fault fails a kernel whose numbers are right."""

from __future__ import annotations

import json

import kernel_examples as examples
from nest_faults import no_start, planted
from typer.testing import CliRunner

from kernelgen.__main__ import app
from kernelgen.composite.write import dump_desc
from kernelgen.driver import compile
from kernelgen.semantics import reference
from kernelgen.verify import Status, verify


class Careless:
    """A kernel whose numbers are right and whose nest is not."""

    def __init__(self, desc):
        self.run = reference(desc)
        self.nest = next(iter(planted(compile(desc, "python").nest, no_start)))

    def __call__(self, *inputs, out):
        return self.run(*inputs, out=out)


def test_a_checked_kernel_says_what_was_shown() -> None:
    record = verify(examples.softmax(), "python", checked=True)
    assert "terms" in record.checked["kernel"]
    assert "small" not in record.checked
    assert json.loads(json.dumps(record.to_json()))["checked"]["kernel"][0] == "form"


def test_a_large_kernel_is_sampled_and_a_small_one_is_run_as_a_whole() -> None:
    record = verify(examples.softmax(1000, 1000), "cpu", checked=True)
    assert "terms" not in record.checked["kernel"]
    assert "parallel" in record.checked["kernel"]
    assert "terms" in record.checked["small"]


def test_a_fault_fails_a_kernel_whose_numbers_are_right() -> None:
    record = verify(examples.softmax(), compiler=lambda desc, target: Careless(desc), checked=True)
    assert (record.status, record.reason) == (Status.FAILED, "checker")
    assert record.message.startswith("initialised: ")


def test_nothing_is_checked_unasked() -> None:
    assert verify(examples.softmax(), "python").checked == {}


def test_the_command_checks_when_asked(tmp_path) -> None:
    file, out = tmp_path / "softmax.info", tmp_path / "out.json"
    file.write_text(json.dumps(dump_desc(examples.softmax())))
    command = ["verify", str(file), "--target", "python", "--jobs", "1", "--check", "--json", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    (record,) = json.loads(out.read_text())["records"]
    assert "terms" in record["checked"]["kernel"]
