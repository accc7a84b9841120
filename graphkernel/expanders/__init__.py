"""Expanders: composite operators as basic ones, so that kernels can hold them.

Reading order: ``base`` (what an expander is and how one is applied), ``lists`` (which operators each target expands
by default), then the catalogue: ``activation``, ``activation_ext``, ``gradient``, ``softmax``, ``normalize``,
``batch_norm``, ``losses``, ``optimizers``, ``shape``, ``effects``, ``arithmetic``, ``complex_numbers``, ``creation``,
``indexing``, ``products``, ``random``, and ``fused`` for what the named fusion passes make. ``means``, ``dtypes`` and
``accurate`` hold what several of them need: means over extents that may be symbolic, operands of several data types,
and accurate functions for targets that lack log1p, expm1, tanh or erf.

An expander is a function from Tensors to Tensors, written with :mod:`graphkernel.ops`. It must keep the operator's
meaning (a test compares both in float64 for every expander declared here), its result types, and say ``Declined(reason)``
where it does not apply. It need not think about float16: narrow floats arrive as float32 and are rounded once at the end.
"""
