"""The GPU target's tools so far: nvrtc (CUDA C to PTX and cubin, without a device), ptx (runs PTX in numpy and checks it)."""
