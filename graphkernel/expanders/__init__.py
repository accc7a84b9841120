"""Expanders: composite operators as basic ones, so that kernels can hold them.

Reading order: ``base`` (what an expander is and how one is applied), ``lists`` (which operators each target expands by
default), then the catalogue: ``activation``, ``gradient``, ``softmax``, ``normalize``, ``shape``, ``effects``.

An expander is a function from Tensors to Tensors, written with :mod:`graphkernel.ops`. It must keep the operator's
meaning (a test compares both in float64 for every expander declared here), its result types, and say ``Declined(reason)``
where it does not apply. It need not think about float16: narrow floats arrive as float32 and are rounded once at the end.
"""
