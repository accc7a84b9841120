"""The polyhedral room, the only one that imports islpy: a description becomes a scop, a schedule, a proved loop nest.

Rooms: grouping, lower, mapping, model, proof, schedule.
Reading order: build_scop, lower_scop.
"""
