"""Loop nests, pure Python, no isl.

Reading order: nodes, scalars, index, walk; text, verify; the passes initialize, pack, registers, contract, share, jam,
merge, scalarize, hoist. For devices of many threads: ranges, threads (who touches what), the passes grids, partials,
places, barriers, distribute with items, widen, tiles, slices, chunks.

Products of matrices on such devices: heads and tails (what comes before and behind), products (recognises them), panels
(operands into shared memory), micro_tiles and fragments (threads and tensor cores multiply), product_tiles (the pass).
"""
