"""Scalar functions as instructions, transcendental ones among them.

Reading order: polynomials, register_tables, tables, tabulated, exponentials, logarithms, trigonometry, mathlib,
byte_products, nibbles, arithmetic, known_divisors.
"""
