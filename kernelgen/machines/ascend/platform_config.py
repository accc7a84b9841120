"""Reads the platform_config ``.ini`` file of a user's own toolkit: its figures replace ours."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.types import L0A, L0B, L0C, L1, UB
from kernelgen.machines.ascend.description import Machine
from kernelgen.machines.ascend.machines import MACHINES

FAMILIES = (("Ascend910_93", "910_93"), ("Ascend910B", "910B"), ("Ascend950", "950"), ("Ascend310P", "310P"),
            ("Ascend910", "910A"))  # fmt: skip
"""How a SoC's name begins -> the machine whose rules it shares; the longer beginnings first."""

VERSION, SOC, CORE = "version", "SoCInfo", "AICoreSpec"
SIZES: Mapping[str, str] = MappingProxyType(
    {UB: "ub_size", L1: "l1_size", L0A: "l0_a_size", L0B: "l0_b_size", L0C: "l0_c_size"}
)


def read_platform(path: str | Path) -> Machine:
    """The machine that a platform_config file describes: sizes, cores and clock from the file, rules from its family.

    Raises AscendError that names the key which is missing or no number. What the manual holds back of the unified buffer
    and of L1 (256 bytes on A2) is taken off the file's sizes.
    """
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    if not parser.read(path, encoding="utf-8"):
        raise AscendError(f"{path}: no such platform_config file")
    soc = _text(parser, path, VERSION, "SoC_version")
    base = MACHINES[_family(soc, path)]
    memories = {memory: _number(parser, path, CORE, key) for memory, key in SIZES.items()}
    held_back = 256 if base.architecture == 2201 else 0
    cores = _number(parser, path, SOC, "ai_core_cnt")
    vector = _number(parser, path, SOC, "vector_core_cnt") if base.split_cores else cores
    return replace(
        base,
        name=soc,
        cube_cores=cores,
        vector_cores=vector,
        gigahertz=_number(parser, path, CORE, "cube_freq") / 1000,
        memories=MappingProxyType(
            {memory: size - (held_back if memory in (UB, L1) else 0) for memory, size in memories.items()}
        ),
        sources=MappingProxyType({**base.sources, "memories": str(path), "cores": str(path), "gigahertz": str(path)}),
    )


def _family(soc: str, path: str | Path) -> str:
    for beginning, machine in FAMILIES:
        if soc.startswith(beginning):
            return machine
    known = ", ".join(beginning for beginning, _ in FAMILIES)
    raise AscendError(f"{path}: SoC_version {soc!r} begins with none of {known}")


def _text(parser: configparser.ConfigParser, path: str | Path, section: str, key: str) -> str:
    value = parser.get(section, key, fallback=None)
    if value is None:
        raise AscendError(f"{path}: key {key!r} is missing in section [{section}]")
    return value.strip()


def _number(parser: configparser.ConfigParser, path: str | Path, section: str, key: str) -> int:
    text = _text(parser, path, section, key)
    try:
        return int(text, 0)
    except ValueError as error:
        raise AscendError(f"{path}: key {key!r} in section [{section}] is no whole number: {text!r}") from error
