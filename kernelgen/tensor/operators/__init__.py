"""The basic operators, one family a file: type rule, numpy meaning, kind. Kernels are made of them.

Reading order: slice_masks, type_rules, attributes, families, cast, complex_numbers, creation, csr, effects, elemwise,
indexing, layout, matmul, nn, padding, pieces, pool, reduce, scan, scatter, select, shape, status, catalogue.
"""
