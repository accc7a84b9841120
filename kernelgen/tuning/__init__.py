"""Kernels for one machine and for known sizes: faster plans by search, kernels of their own for hot sizes.

Reading order: hot_sizes, comparison, cost_order, neighbours, tune, database, task.
"""
