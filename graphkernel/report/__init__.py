"""Saying what was done: data first, then its forms.

Reading order: ``report`` (what an executable runs where, as data, text and JSON), ``page`` (the report as a page), ``html``
(parts of pages), ``entries`` (from kernels and plans to the parts of a report), ``explain`` (every decision of the optimizer),
``answer`` (why two operators are, or are not, in one kernel), ``difference`` (how far results are apart), ``verdict``
(whether that is rounding), ``counted`` (numbers with their nouns), ``table`` (for people and programs).
"""
