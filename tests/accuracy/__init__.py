"""How far results are from the exact ones: ``python -m tests.accuracy --json benchmarks/results/accuracy.json``.

Reading order: functions (what is measured, the exact values, and the bounds that hold), arguments (all values of the half
types, samples of every exponent of the others), measure (one function in one data type). ``test_accuracy`` holds the bounds
on fewer arguments.
"""
