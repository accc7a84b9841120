"""The polyhedral room, the only one that imports islpy.

Reading order: axes, scop, build, fold, partition, group, relations, schedule, tree, map_cpu, proof, astgen, text.
"""
