"""From a nest to a kernel, one pass a file.

Rooms: cube, functions, lanes, loops, order, program.
Reading order: element_types, launch, promote_tiles, tile_lengths, assemble.
"""
