"""A PTX interpreter in numpy: runs what NVRTC writes, counts what it costs, and finds what is wrong with it.

Reading order: errors, nodes (a module as values), tokens, cursor, types, declarations, carries (sums of long integers), body,
calls (device functions in the place of their calls), parser; flow (chunks, registers that may be read too early), lanes
(who is who), findings, counters, assembled (machine code of an instruction), memory (spaces and buffers), shadow (races),
publication (order between blocks), state, frame (lanes that go together), operands; rounding, approximate, floats, integers,
compare, convert, arithmetic (what computes); access (loads and stores), atomics, asynchronous (cp.async), warp (shuffles,
votes), matrix (mma, ldmatrix), barriers; ahead (what is computed before anybody asks for it), decode, steps, machine
(divergence and meetings); arguments, report, launch.

Stricter than a device: a thread that ends before a barrier of its block is a fault, two lanes that store the same number
in one word race, and a mask may not name a lane that goes past the instruction. Not interpreted, and refused by name:
calls of functions without a body, textures, mbarrier, bulk copies, clusters, wgmma, barriers for a part of a block.
"""

from kernelgen.targets.gpu.ptx.arguments import Blank
from kernelgen.targets.gpu.ptx.counters import Counts, Traffic
from kernelgen.targets.gpu.ptx.errors import PtxError
from kernelgen.targets.gpu.ptx.findings import KINDS, Finding
from kernelgen.targets.gpu.ptx.launch import run
from kernelgen.targets.gpu.ptx.parser import parse
from kernelgen.targets.gpu.ptx.report import Report

__all__ = ["KINDS", "Blank", "Counts", "Finding", "PtxError", "Report", "Traffic", "parse", "run"]
