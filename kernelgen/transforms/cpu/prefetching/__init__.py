"""Passes that ask for memory ahead of its reads, by who reads it: a hint changes nothing but time.

Reading order: hints, panels, blocks, rows, factors, transposed, later_rows, summed_rows.
"""
