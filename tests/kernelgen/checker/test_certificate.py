"""Certificates go to JSON and back, hold for their kernel, and for no other one."""

from __future__ import annotations

import json
from dataclasses import replace

import kernel_examples as examples
from nest_faults import planted, shifted_load
from typer.testing import CliRunner

from kernelgen.__main__ import app
from kernelgen.checker import Certificate, certify
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.write import dump_desc
from kernelgen.driver import compile
from kernelgen.nest.nodes import Nest

DESC = examples.softmax()
KERNEL = compile(DESC, "python")


def made() -> Certificate:
    return certify(KERNEL.nest, KERNEL.proof.facts, DESC)


def holds(certificate: Certificate, nest: Nest, desc: KernelDesc | None = None) -> bool:
    """Whether it has no fault, and the nest gives an equal one."""
    return not certificate.fault and certify(nest, KERNEL.proof.facts, desc) == certificate


def test_a_certificate_survives_json() -> None:
    assert Certificate.from_json(json.loads(json.dumps(made().to_json()))) == made()


def test_it_says_what_was_proved_and_what_was_looked_at() -> None:
    lines = str(made()).splitlines()
    assert lines[0] == "kernel softmax"
    assert any(line.startswith("proved  legality") and line.endswith("is empty") for line in lines)
    assert any(line.startswith("checked all iterations: ") and "terms" in line for line in lines)


def test_it_holds_for_its_own_nest_only() -> None:
    assert holds(made(), KERNEL.nest, DESC)
    assert not holds(made(), compile(examples.softmax(6, 10), "python").nest)
    assert not holds(replace(made(), shown=("bounds",)), KERNEL.nest, DESC)


def test_a_faulty_nest_gets_a_certificate_that_says_so() -> None:
    broken = next(iter(planted(KERNEL.nest, shifted_load)))
    certificate = certify(broken, KERNEL.proof.facts, DESC)
    assert certificate.fault.startswith("bounds: ")
    assert not holds(certificate, broken, DESC)


def test_the_command_prints_and_writes_certificates(tmp_path) -> None:
    file, out = tmp_path / "softmax.info", tmp_path / "out.json"
    file.write_text(json.dumps(dump_desc(DESC)))
    found = CliRunner().invoke(app, ["certify", str(file), "--target", "python", "--json", str(out)])
    assert found.exit_code == 0
    assert found.output.startswith("kernel softmax")
    (document,) = json.loads(out.read_text())["certificates"]
    assert Certificate.from_json(document).fault == ""
