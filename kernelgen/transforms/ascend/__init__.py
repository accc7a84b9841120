"""Passes for Ascend's cores.

Reading order: materialise_operands.
"""
