"""Inputs on which a wrong kernel shows: both signs, zeros, ties, both sides of every comparison, infinities and NaN.

Every input is drawn by a profile (positive numbers, numbers around 1, ...). Which profile an input gets is found by trying:
a small kernel of the same operators is evaluated in ranges, and those profiles stay that keep its results inside of the
domains of logarithms, roots and quotients, and that show most of what its operators can do.

Reading order: profiles (how one array is drawn), marks (rows of equal numbers, extremes at the edges, special numbers),
goals (what a draw shows of the operators), choose (profiles for all inputs), rounds (the draws).
"""

from kernelgen.trials.rounds import trials

__all__ = ["trials"]
