"""The GPU target: a distributed nest as CUDA C, compiled by NVRTC, run on a device or checked by a PTX interpreter.

Reading order: program (what to launch), dialect (a language as a table), scalars (its functions), names, printer (the text);
nvrtc (CUDA C to PTX and cubin, without a device), cubins (what was compiled before), ptx (runs PTX in numpy and checks it),
machines, model
(an estimate of a kernel's time), extents, interpret (a kernel without a device), device, arrays, launcher (a kernel on one),
entry, target.
"""

from kernelgen.targets.gpu.target import TARGET

__all__ = ["TARGET"]
