"""The five machines as data. A figure that no document gives is marked ``assumed``; a user's own file wins over all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.types import L0A, L0B, L0C, L1, UB
from kernelgen.machines.ascend import dtype_rules as rules
from kernelgen.machines.ascend.description import Machine, Rates

KB = 1024

A2_RATES = Rates(
    vector_start=22.0,
    copy_start=112.3,
    copy_one_core=34.3,
    copy_all_cores=833.7,
    matrix_copy=59.5,
    load_start=55.0,
    load_a=256.0,
    load_b=128.0,
    mmad_start=9.9,
    fixpipe=64.0,
    local_copy=64.0,
    issue=2.0,
    scalar_access=20.0,
    queue_depth=32,
)
ALIGNMENTS: Mapping[str, int] = MappingProxyType({UB: 32, L1: 32, L0A: 512, L0B: 512, L0C: 64})

_SOURCES: dict[str, str] = {
    "memories": "spec/gpu-ascend.md 4, table of architectures; spec/akg.md 3.1",
    "alignments": "spec/gpu-ascend.md 4, alignment; the manual's general restrictions",
    "event_ids": "spec/gpu-ascend.md 4, table of architectures",
    "operations": "spec/gpu-ascend.md 4, dtypes on A2 and the remark on 910A and 950",
    "casts": "spec/gpu-ascend.md 4, dtypes on A2; which mode goes with which pair: assumed (widening is CAST_NONE)",
    "vector_start": "fitted (fit.py)",
    "copy_start": "fitted (fit.py)",
    "copy_one_core": "fitted (fit.py)",
    "copy_all_cores": "fitted (fit.py)",
    "load_start": "fitted (fit.py)",
    "mmad_start": "fitted (fit.py)",
    "matrix_copy": "spec/akg.md 3.1: L2 read 110 GB/s a core in the 910_93 cost table, at 1.85 GHz",
    "load_a, load_b": "spec/gpu-ascend.md 4, throughput",
    "fixpipe": "spec/akg.md 3.1 gives UB to L2 64 and L0C to UB 256: the smaller is taken; assumed for L0C to GM",
    "local_copy": "assumed: one repeat of 256 bytes in four cycles",
    "issue, scalar_access": "assumed",
    "queue_depth": "spec/gpu-ascend.md 4 for MTE1 and M; assumed for the other pipes",
    "gigahertz": "spec/gpu-ascend.md 4, clock and cores",
    "cores": "spec/gpu-ascend.md 4, clock and cores; spec/akg.md 3.1",
    "bank_groups, group_ports": "spec/gpu-ascend.md 4, UB banks (A2) and the remark on 950; others: taken from A2",
    "select_reserve": "spec/gpu-ascend.md 4, 8 KB held back on A2; Select needs it",
}

ASCEND_910B = Machine(
    name="910B",
    architecture=2201,
    split_cores=True,
    cube_cores=24,
    vector_cores=48,
    gigahertz=1.85,
    memories=MappingProxyType({UB: 192 * KB - 256, L1: 512 * KB - 256, L0A: 64 * KB, L0B: 64 * KB, L0C: 128 * KB}),
    alignments=ALIGNMENTS,
    select_reserve=8 * KB,
    event_ids=8,
    reserved_ids=frozenset({6, 7}),
    has_copy_pad=True,
    has_fixpipe=True,
    bank_groups=16,
    group_ports=1,
    operations=rules.A2_OPERATIONS,
    casts=rules.A2_CASTS,
    rates=A2_RATES,
    sources=MappingProxyType(_SOURCES),
)
"""A2; cores and clock of the B2 model, others come from platform_config."""

ASCEND_910_93 = replace(
    ASCEND_910B, name="910_93", sources={**_SOURCES, "rates": "as 910B: per die, no measurement of its own"}
)
"""A3: per die as A2."""

ASCEND_910A = Machine(
    name="910A",
    architecture=1001,
    split_cores=False,
    cube_cores=30,
    vector_cores=30,
    gigahertz=0.9,
    memories=MappingProxyType({UB: 256 * KB, L1: 1024 * KB, L0A: 64 * KB, L0B: 64 * KB, L0C: 256 * KB}),
    alignments=MappingProxyType({**ALIGNMENTS, L1: 512}),
    select_reserve=0,
    event_ids=4,
    reserved_ids=frozenset(),
    has_copy_pad=False,
    has_fixpipe=False,
    bank_groups=16,
    group_ports=1,
    operations=rules.A1_OPERATIONS,
    casts=rules.A1_CASTS,
    rates=replace(A2_RATES, copy_all_cores=1278.0),
    sources=MappingProxyType(
        {
            **_SOURCES,
            "alignments": "spec/akg.md 3.2: L1 512 bytes",
            "copy_all_cores": "1.15 TB/s measured by a third party (spec/gpu-ascend.md 4) over 0.9 GHz",
            "rates": "the others as 910B: no measurement of its own",
        }
    ),
)
ASCEND_310P = replace(
    ASCEND_910A,
    name="310P",
    architecture=2002,
    cube_cores=8,
    vector_cores=8,
    event_ids=8,
    rates=replace(A2_RATES, copy_all_cores=8 * 34.3),
    sources=MappingProxyType(
        {
            **_SOURCES,
            "cores": "spec/akg.md 3.1; a vendor's example has 10 cores and 8 more for vectors",
            "gigahertz": "assumed as 910A",
            "operations": "as 910A: no table of its own, and the narrower one is safe",
            "rates": "assumed: no measurement of its own; memory not taken to be the limit",
        }
    ),
)
ASCEND_950 = Machine(
    name="950",
    architecture=3510,
    split_cores=True,
    cube_cores=32,
    vector_cores=64,
    gigahertz=1.65,
    memories=MappingProxyType({UB: 253952, L1: 512 * KB, L0A: 64 * KB, L0B: 64 * KB, L0C: 256 * KB}),
    alignments=ALIGNMENTS,
    select_reserve=0,
    event_ids=8,
    reserved_ids=frozenset(),
    has_copy_pad=True,
    has_fixpipe=True,
    bank_groups=16,
    group_ports=2,
    operations=rules.A5_OPERATIONS,
    casts=rules.A2_CASTS,
    rates=replace(A2_RATES, load_b=256.0, fixpipe=128.0, copy_all_cores=970.0),
    sources=MappingProxyType(
        {
            **_SOURCES,
            "memories": "spec/akg.md 3.1: UB 253,952 usable of 256 KB",
            "copy_all_cores": "about 1.6 TB/s (spec/gpu-ascend.md 4) over 1.65 GHz",
            "fixpipe": "spec/gpu-ascend.md 4: L0C to UB or L1 128",
            "rates": "the others as 910B; its L0A holds NZ, which LoadData does not model here: use 910B for cube kernels",
        }
    ),
)

MACHINES: Mapping[str, Machine] = MappingProxyType(
    {machine.name: machine for machine in (ASCEND_910A, ASCEND_310P, ASCEND_910B, ASCEND_910_93, ASCEND_950)}
)


def find_machine(name: str) -> Machine:
    """The machine of that name. Raises AscendError with the known names."""
    if name not in MACHINES:
        raise AscendError(f"unknown Ascend machine {name!r}; known: {', '.join(MACHINES)}, or a platform_config file")
    return MACHINES[name]
