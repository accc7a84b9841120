"""Loop nests, pure Python, no isl: nodes, scalars, index, then text, verify and the passes initialize, contract, share, merge, scalarize, hoist (walk serves them)."""
