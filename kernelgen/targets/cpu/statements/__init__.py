"""Straight-line statements: expressions, loads and stores, locals.

Reading order: bound_checks, strided, access, known_bounds, quantized_bytes, expressions, locals, statements.
"""
