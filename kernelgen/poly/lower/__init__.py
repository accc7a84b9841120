"""Operators as statements, one file a family; :mod:`kernelgen.poly.lower.table` says which operator is whose.

Reading order: points, builder, lowering; pointwise, copies, reductions, assign, slices, products, convolution, indexing,
scans, layouts, sparse, random; table; complex_parts (from description to description, before all others).
To add an operator: write its two functions in a family and name it in the table.
"""
