"""Loop nests, pure Python, no isl.

Reading order: nodes, scalars, index, walk; text, verify; the passes initialize, pack, registers, contract, share, jam,
merge, scalarize, hoist. For devices of many threads: ranges, threads (who touches what), the passes grids, partials,
places, barriers, distribute with widen.
"""
