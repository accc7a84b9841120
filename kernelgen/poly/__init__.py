"""The polyhedral room, the only one that imports islpy.

Reading order: scop, text; axes, pairing, build; classes, fold; partition, group; relations; align, schedule;
tree, map_cpu; proof; astgen; loops (the story in one function).
"""
