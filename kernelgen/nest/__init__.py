"""Loop nests, pure Python, no isl.

Reading order: nodes, scalars, index, walk; text, verify; the passes initialize, contract, share, merge, scalarize, hoist.
"""
