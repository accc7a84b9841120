"""Image pipelines and stencils in time, which are no networks: one kernel of ours beside numba by hand.

Reading order: programs, by_hand, __main__, devices.
"""
