"""Scalar functions as instructions, transcendental ones among them.

Reading order: exponentials, logarithms, trigonometry, mathlib, byte_products, nibbles, arithmetic, known_divisors.
"""
