"""The polyhedral room, the only one that imports islpy.

Reading order: scop, text; axes, pairing, lower (operators as statements, a room of its own), build; classes, fold;
partition, group; relations; reuse, align, schedule; tree, map_cpu; proof; astgen; loops (the story in one function).
"""
