"""What each instruction of PTX does to the lanes that execute it.

Reading order: approximate, integers, operands, rounding, compare, floats, convert, arithmetic, access, asynchronous,
atomics, matrix, warp.
"""
