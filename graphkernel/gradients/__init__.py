"""Gradient rules: what each operator passes back to its operands, so that gradients are graphs like any other.

Reading order: ``base`` (what a rule is), ``reverse`` (how a graph is walked back), then the catalogue by family:
``elemwise``, ``arithmetic``, ``activation``, ``reductions``, ``shapes``, ``pieces``, ``indexing``, ``sparse``, ``products``,
``windows``, ``norms``, ``losses``, ``devices``; ``undefined`` says which operators have none, and why.

A rule is written with :mod:`graphkernel.ops` and uses MindSpore's gradient operators where the catalogue has them. An
operator without a rule is differentiated through its expansion.
"""
