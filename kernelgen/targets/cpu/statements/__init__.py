"""Straight-line statements: expressions, loads and stores, locals.

Reading order: bound_checks, access, expressions, locals, statements.
"""
