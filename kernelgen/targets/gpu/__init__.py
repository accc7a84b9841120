"""The GPU target: a distributed nest as CUDA C, compiled by NVRTC, run on a device or checked by a PTX interpreter.

Reading order: program (what to launch), dialect (a language as a table) with cuda, hip, opencl and bfloat16 (its bits where
a language has no type for it), scalars (functions), names, printer (the text); text_entry and opencl_entry (kernels in other
languages); nvrtc (CUDA C to PTX and cubin, without a device), cubins (what was compiled before), ptx (runs PTX in numpy and
checks it), machines, model (an estimate of a kernel's time), interpret (a kernel without a device), work (how long
a sample is), device, arrays, launcher (a kernel on one), entry, target.
"""

from kernelgen.targets.gpu.target import TARGET

__all__ = ["TARGET"]
