"""Rewrites of a description that no target needs to know of: afterwards equal things are written alike, one scalar function an
operator.

Reading order: complex_numbers, identifiers, argument_shapes, axes, broadcasts, common_subexpressions, dead_code,
constant_folding, copy_propagation, groups_in_lanes, implied_broadcasts, output_names, reshapes, synonyms, text, three_address,
unsupported_types, window_padding.

A pass gives back the same object when there is nothing to do, does nothing the second time, keeps the names of inputs and
outputs and, but for ``boundary``, their shapes, and never moves an operator past an in-place one. Two of AKG's passes are
elsewhere: dims that no operator tells apart become one in ``poly/fold.py``, on buffers, where reshapes that line up have
been split into dims already; complex tensors get their trailing dim of 2 where buffers are made.
"""
