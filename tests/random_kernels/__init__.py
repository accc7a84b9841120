"""Random composite kernels over the whole vocabulary, checked against the reference: ``python -m tests.random_kernels``.

Reading order: values (a tensor with bounds of its size and error; a sample), writer (appends operators, chooses operands);
the steps: pointwise, moves, cuts, layouts, reductions, indexed, sparse, products, linear, assigns; generate (a sample from
a random generator), check (compiles, runs, compares), minimize (makes a failing kernel small), stored (a sample as JSON),
traits (what a kernel has in it), pool (processes that do not hang), records (runs as one).
"""
