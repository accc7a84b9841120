"""Training steps, forward, backward and update of every weight, beside torch's on the same numbers.

``python -m benchmarks.training --json OUT``, with an interpreter that has torch. Reading order: programs, by_torch, __main__.
"""
