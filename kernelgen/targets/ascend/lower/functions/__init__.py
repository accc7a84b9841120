"""Scalar functions as vector instructions.

Reading order: words, reals, angles, functions, powers, wholes, integers, doubles, operations.
"""
