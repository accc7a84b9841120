"""Loop nests, the language between the polyhedral side and every target: pure frozen data, no isl.

Reading order: indices, nodes, marks, extents, index, congruence, ranges, scalars, text, walk, bindings, substitute, cost,
neutral, features, form, preparation, verify.
"""
