"""The GPU target: a distributed nest as CUDA C, compiled by NVRTC, run on a device or checked by a PTX interpreter.

Rooms: dialects, launch.
Reading order: target.
"""

from kernelgen.targets.gpu.target import TARGET

__all__ = ["TARGET"]
