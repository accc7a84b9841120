"""Machines as data: every figure has a source, and a user's platform_config file replaces them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from kernelgen.ascendc.errors import AscendError
from kernelgen.machines.ascend.description import Machine, Rates
from kernelgen.machines.ascend.machines import MACHINES, find_machine
from kernelgen.machines.ascend.platform_config import read_platform
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT32, INT16

CONFIG = """[version]
SoC_version=Ascend910B4
[SoCInfo]
ai_core_cnt=20
vector_core_cnt=40
[AICoreSpec]
cube_freq=1500
l0_a_size=65536
l0_b_size=65536
l0_c_size=131072
l1_size=524288
ub_size=196608
"""


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_every_figure_has_a_source(machine: Machine) -> None:
    text = " ".join(machine.sources)
    own = {"name", "architecture", "split_cores", "sources", "reserved_ids", "has_copy_pad", "has_fixpipe"}
    named = {"cube_cores": "cores", "vector_cores": "cores"}
    for field in fields(Machine):
        if field.name not in own and field.name != "rates":
            assert named.get(field.name, field.name) in text
    for field in fields(Rates):
        assert field.name in text
    assert all(machine.sources.values())


def test_rules_that_differ() -> None:
    a1, a2 = MACHINES["910A"], MACHINES["910B"]
    assert INT16 not in a1.operations["Add"]
    assert FLOAT32 not in a1.operations["WholeReduceSum"]
    assert BFLOAT16 not in a2.operations["Add"]
    assert BFLOAT16 in a2.operations["Duplicate"]
    assert BFLOAT16 in MACHINES["950"].operations["Add"]
    assert (a1.event_ids, a2.event_ids, sorted(a2.reserved_ids)) == (4, 8, [6, 7])
    assert (a1.cores, a2.cores) == (30, 48)


def test_unknown_machine_names_the_known() -> None:
    with pytest.raises(AscendError, match="910A, 310P, 910B, 910_93, 950"):
        find_machine("910C")


def test_platform_config_replaces_sizes_cores_and_clock(tmp_path: Path) -> None:
    path = tmp_path / "Ascend910B4.ini"
    path.write_text(CONFIG)
    machine = read_platform(path)
    assert (machine.name, machine.cube_cores, machine.vector_cores, machine.gigahertz) == ("Ascend910B4", 20, 40, 1.5)
    assert machine.memories["UB"] == 196608 - 256
    assert machine.operations is MACHINES["910B"].operations
    assert machine.sources["cores"] == str(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ub_size=196608\n", "", r"'ub_size' is missing in section \[AICoreSpec\]"),
        ("[SoCInfo]\nai_core_cnt=20\nvector_core_cnt=40\n", "", r"'ai_core_cnt' is missing in section \[SoCInfo\]"),
        ("cube_freq=1500", "cube_freq=fast", "'cube_freq' .* is no whole number: 'fast'"),
        ("Ascend910B4", "Hi3796", "'Hi3796' begins with none of"),
    ],
)
def test_platform_config_says_what_is_missing(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "platform.ini"
    path.write_text(CONFIG.replace(old, new))
    with pytest.raises(AscendError, match=message):
        read_platform(path)


def test_platform_config_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AscendError, match="no such platform_config file"):
        read_platform(tmp_path / "none.ini")
