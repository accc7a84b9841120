"""How much the verifier of kernels can see: ``python -m tests.mutants DIR``.

Reading order: mutant (a description with one fault in it), swaps (which operators are taken for each other), operators
(operators dropped and swapped), numbers (constants and attributes changed, reductions cut short), judge (is it noticed, or
the same kernel, and by what reason), report (many files, the record).
"""
