"""Loop nests, pure Python, no isl.

Reading order: nodes, scalars, index, walk; text, verify; the passes initialize, registers, contract, share, jam,
merge, scalarize, hoist.
"""
