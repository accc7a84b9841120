"""A PTX interpreter in numpy: runs what NVRTC writes, counts what it costs, and finds what is wrong with it.

Rooms: instructions, language, machine, state.

Stricter than a device: a thread that ends before a barrier of its block is a fault, two lanes that store the same number
in one word race, and a mask may not name a lane that goes past the instruction. Not interpreted, and refused by name:
calls of functions without a body, textures, mbarrier, bulk copies, clusters, wgmma, barriers for a part of a block.
"""

from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.parser import parse
from kernelgen.simulators.ptx.machine.arguments import Blank
from kernelgen.simulators.ptx.machine.launch import run
from kernelgen.simulators.ptx.machine.report import Report
from kernelgen.simulators.ptx.state.counters import Counts, Traffic
from kernelgen.simulators.ptx.state.findings import KINDS, Finding

__all__ = ["KINDS", "Blank", "Counts", "Finding", "PtxError", "Report", "Traffic", "parse", "run"]
