"""Plans on a CUDA device.

Reading order: cupy_host, device, capture, device_executable.
"""
