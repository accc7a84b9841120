"""Kernels run: control flow, divergence, barriers, blocks, the report.

Reading order: arguments, assembled, barriers, report, speculation, decode, flow, steps, machine, launch.
"""
