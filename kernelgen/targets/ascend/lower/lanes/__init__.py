"""Elements of tiles that one vector instruction after the other works on.

Reading order: casting, constant_branches, turn, written_numbers, lanes.
"""
