"""Kernels of networks for other processors than the one at hand: what is restricted to a level computes the same, and what is
for another system's machine is assembled.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.cluster.own_products import prepared_operands
from graphkernel.handoff import to_desc
from kernelgen.errors import ArgumentError
from kernelgen.nest.nodes import Nest
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.loops.block_sizes import sizes_for
from kernelgen.targets.cpu.runtime.llvm import compile_object, machine_text
from kernelgen.targets.cpu.text.host import LEVELS, Host, restricted
from tests.support.hosts import needs_avx2
from tests.support.network_parts import PARTS

ARM = Host("generic", frozenset({"neon"}), "aarch64-unknown-linux-gnu")
EM_AARCH64 = 183
MACHINE_FIELD = slice(18, 20)
"""Where an ELF file names its machine."""


def nests(part: str, host: Host) -> Iterator[Nest]:
    """Of all kernels of a part, with what prepares their constants."""
    for node in gk.optimize(PARTS[part]()).operators:
        if node.body is not None:
            plan = Plan(cpu=sizes_for(host, 2))
            nest = lower(to_desc(node), plan, constants=frozenset(prepared_operands(node))).nest
            yield nest
            yield from () if nest.preparation is None else (nest.preparation,)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_assembled_for_arm(part: str) -> None:
    found = [compile_object(emit_for(nest, ARM), ARM) for nest in nests(part, ARM)]
    assert found
    assert all(
        image[:4] == b"\x7fELF" and int.from_bytes(image[MACHINE_FIELD], "little") == EM_AARCH64 for image in found
    )


@pytest.mark.parametrize("part", ["product", "attention", "convolutions"])
def test_products_for_arm_multiply_and_add_whole_vectors(part: str) -> None:
    assert any(re.search(r"\bfmla\s+v\d+\.4s", machine_text(emit_for(nest, ARM), ARM)) for nest in nests(part, ARM))


RUN = """
import numpy as np
import graphkernel as gk
from kernelgen.targets.cpu.runtime.llvm import detect_host
from tests.support.network_parts import PARTS
print(detect_host().cpu)
for name, made in PARTS.items():
    graph = made()
    random = np.random.default_rng(1)
    inputs = [random.standard_normal(value.type.shape).astype(np.float32) for value in graph.inputs]
    exe = gk.compile(graph, threads=1)
    assert not exe.report.host, name
    (found,), (expected,) = exe(*inputs), gk.compile(graph, 0, host="numpy")(*inputs)
    print(name, float(np.abs(found - expected).max() / np.abs(expected).max()))
"""


def ran(level: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, "GRAPHKERNEL_CPU": level},
        capture_output=True,
        text=True,
        check=False,
    )


@needs_avx2
def test_a_level_of_processors_is_asked_for() -> None:
    done = ran("x86-64-v3")
    assert done.returncode == 0, done.stderr
    cpu, *rows = done.stdout.splitlines()
    assert cpu == "x86-64-v3"
    assert len(rows) == len(PARTS)
    assert all(float(row.split()[-1]) < 1e-5 for row in rows), rows


@pytest.mark.parametrize("part", PARTS)
def test_code_for_a_level_has_its_registers_alone(part: str) -> None:
    """No vectors of 512 bits, no registers beyond the sixteenth, and whole vectors of 256 bits."""
    host = LEVELS["x86-64-v3"]
    texts = [machine_text(emit_for(nest, host), host) for nest in nests(part, host)]
    assert not any(re.search(r"%zmm|%[xy]mm(1[6-9]|2\d|3[01])\b|\{%k", text) for text in texts)
    assert any("%ymm" in text for text in texts)


def test_a_level_that_is_not_reached_is_refused() -> None:
    here = Host("old", LEVELS["x86-64-v2"].features)
    assert restricted("x86-64-v2", here) == LEVELS["x86-64-v2"]
    with pytest.raises(ArgumentError, match="this processor, old, lacks avx, avx2"):
        restricted("x86-64-v3", here)


def test_a_name_that_is_no_level_is_refused() -> None:
    with pytest.raises(ArgumentError, match="GRAPHKERNEL_CPU=zen9: one of x86-64, x86-64-v2"):
        restricted("zen9", LEVELS["x86-64-v4"])


def test_levels_grow() -> None:
    assert [len(host.features) for host in LEVELS.values()] == sorted(len(host.features) for host in LEVELS.values())
    assert [host.vector_bytes for host in LEVELS.values()] == [1, 16, 32, 32]
    assert np.all(np.diff([host.vector_registers for host in LEVELS.values()]) >= 0)
