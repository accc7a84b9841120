"""Inputs on which a kernel and its reference can be compared, and smaller shapes for kernels too large for a test run.

Reading order: goals, index_inputs, inputs, marks, profiles, choose_profiles, smaller_shapes, rounds.

Every input is drawn by a profile (positive numbers, numbers around 1, ...). Which profile an input gets is found by trying:
a small kernel of the same operators is evaluated in ranges, and those profiles stay that keep its results inside of the
domains of logarithms, roots and quotients, and that show most of what its operators can do.
"""

from kernelgen.samples.rounds import trials

__all__ = ["trials"]
