"""What is known of machines, as values: every figure of the hardware, with its unit and where it is from.

Rooms: gpu, ascend.
Reading order: cpu, usual.
"""
