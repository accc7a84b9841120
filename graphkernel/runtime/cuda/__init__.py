"""Plans on a CUDA device.

Reading order: cublas, cupy_host, launch_action, device, capture, device_executable.
"""
