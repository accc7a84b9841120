"""Inputs that nobody should give, as one table: each ends in an error of a documented class, or in the right result.

``case`` (what a case is); ``onnx_cases``, ``text_cases``, ``composite_cases``, ``array_cases``, ``option_cases`` and
``written_cases`` (the cases of each door); ``table`` (all of them); ``trial`` (one case within limits of memory and time).
"""
