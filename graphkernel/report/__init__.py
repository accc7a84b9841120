"""Saying what was done: data first, then its forms.

Reading order: ``report`` (what an executable runs where, as data, text and JSON), ``html`` (the same for notebooks),
``collect`` (from kernels and plans to its entries), ``explain`` (every decision of the optimizer, and why two operators
are, or are not, in one kernel), ``origin`` (what an operator was made from), ``difference`` (how far results are apart),
``counted`` (numbers with their nouns), ``table`` (for terminals and programs).
"""
