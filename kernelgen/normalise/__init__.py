"""Passes from descriptions to descriptions: fewer operators, one way to say each thing, the same results and callers.

Reading order: edit (what the passes share), text (a description as text); identifiers; dead; names, axes, three_address;
constants, broadcasts, implied; copies, reshapes, subexpressions, boundary, outputs; types. ``kernelgen.stages`` holds them
in the order in which they run, and says why.

A pass gives back the same object when there is nothing to do, does nothing the second time, keeps the names of inputs and
outputs and, but for ``boundary``, their shapes, and never moves an operator past an in-place one. Two of AKG's passes are
elsewhere: dims that no operator tells apart become one in ``poly/fold.py``, on buffers, where reshapes that line up have
been split into dims already; complex tensors get their trailing dim of 2 where buffers are made.
"""
