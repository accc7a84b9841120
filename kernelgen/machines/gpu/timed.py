"""Devices as data: what the model of :mod:`kernelgen.targets.gpu.launch.time_model` needs to know about them, and where it
is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgen.machines.gpu.device import HOPPER, KILOBYTE, GpuMachine
from kernelgen.tensor.dtypes import FLOAT16

GUIDE = "CUDA C++ Programming Guide, arithmetic throughput and technical specifications by compute capability"


@dataclass(frozen=True)
class TimedMachine:
    """A device with its rates. They are per second, latencies in clock cycles, sizes in bytes.

    ``bandwidth`` is the memory's peak, ``attainable`` the share of it that a copy reaches. ``lanes`` are the results that a
    multiprocessor gives in a cycle for each class of instructions of :mod:`kernelgen.simulators.ptx.state.counters`;
    ``matrix_cycles`` is how long one warp's product of 16 x 8 x 16 halves keeps its matrix units busy. ``start`` is what an
    empty kernel takes, in seconds.
    """

    name: str
    device: GpuMachine
    clock: float
    bandwidth: float
    attainable: float
    l2_bandwidth: float
    l2_bytes: int
    start: float
    matrix_cycles: float
    lanes: Mapping[str, float]
    blocks: int = 32
    sources: tuple[str, ...] = ()


HOPPER_LANES = {
    "float": 128.0, "half": 256.0, "double": 64.0, "integer": 64.0, "compare": 64.0, "move": 64.0, "convert": 64.0,
    "special": 16.0, "warp": 32.0, "control": 64.0, "load": 32.0, "store": 32.0, "atomic": 32.0, "async": 32.0,
    "barrier": 32.0,
}  # fmt: skip
VOLTA_LANES = HOPPER_LANES | {"float": 64.0, "half": 128.0, "double": 32.0}
LUO = "Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking, 2024 (latency, mma)"

SXM = replace(HOPPER, latency=479.0)
VOLTA = GpuMachine(
    matrices=frozenset({FLOAT16}), async_copies=False, processors=80, latency=375.0, shared_bytes=96 * KILOBYTE
)
H100 = TimedMachine(
    "H100", SXM, 1.755e9, 3.35e12, 0.9, 5.5e12, 50 << 20, 1.2e-6, 1.6, HOPPER_LANES,
    sources=("NVIDIA H100 SXM data sheet", GUIDE, LUO, "share of a copy as measured on an H200"),
)  # fmt: skip
H200 = TimedMachine(
    "H200", SXM, 1.755e9, 4.8e12, 0.9, 5.5e12, 50 << 20, 1.2e-6, 1.6, HOPPER_LANES,
    sources=("NVIDIA H200 data sheet", GUIDE, LUO, "copy measured on an H200: 4.3 TB/s"),
)  # fmt: skip
V100 = TimedMachine(
    "V100", VOLTA, 1.53e9, 900e9, 0.92, 2.155e12, 6 << 20, 0.9e-6, 4.0, VOLTA_LANES,
    sources=(
        "NVIDIA V100 SXM2 data sheet", GUIDE,
        "Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018 (L2, latency)",
        "AKG's published times: its largest sums of arrays (share of a copy), its shortest less one trip to memory (start)",
    ),
)  # fmt: skip
MACHINES: Mapping[str, TimedMachine] = {machine.name: machine for machine in (H100, H200, V100)}
