"""The polyhedral room, the only one that imports islpy.

Reading order: scop, text, contexts; axes, pairing, lower (operators as statements, a room of its own), build; classes, fold;
partition, group, owners, privatise; pairs, relations; reuse, align, schedule; tree, follow, blocks, map_cpu, map_gpu
(with widths), map_ascend, apply; proof; astgen; loops (the story in one function); size_products, sites, wholes, moments,
order, landing, races, alignment, room (proofs about the grids of a GPU).
"""
