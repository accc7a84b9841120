"""Vector instructions on arrays.

Reading order: arithmetic, lanes, checks, compare_select, moves, reduce, rounding, lane_wise.
"""
