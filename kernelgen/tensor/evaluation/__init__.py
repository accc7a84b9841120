"""The numpy meaning of a graph: the oracle that passes and kernels are held against, in its own types or in float64.

Reading order: computed, evaluate, widened.
"""
