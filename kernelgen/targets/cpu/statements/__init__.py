"""Straight-line statements: expressions, loads and stores, locals.

Reading order: bound_checks, strided, access, expressions, locals, statements.
"""
