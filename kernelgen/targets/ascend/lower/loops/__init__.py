"""Loops of a nest as turns over lanes and rows.

Reading order: lane_reductions, transfers, evaluate, vectorisable, strip_mine.
"""
