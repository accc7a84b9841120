"""Loop nests, pure Python, no isl.

Reading order: nodes, scalars, index, congruence, walk, substitute; text, verify, extents (indices of known
sizes), features (what a nest does at given sizes); the passes initialize, pack, registers, contract,
share, jam, merge, scalarize, hoist, split (layouts in blocks), peel (clamped places).
For matrix units: boxes (what loops make), factors (into memory).

For devices of many threads: abilities (what they do together), ranges, threads (who touches what), the passes sink (what a
row computes once), grids, rows, partials, places, barriers, distribute with items, widen, tiles, slices, chunks, seats
(blocks of another shape) and side_by_side (launches as one).

Products of matrices on such devices: heads and tails (what comes before and behind), products (recognises them), panels
(operands into shared memory), micro_tiles and fragments (threads and tensor cores multiply), product_tiles (the pass).
"""
