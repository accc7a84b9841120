"""Whole networks built with our functions: what the benchmarks count and the tests run at small size.

``weights`` (specs and random arrays), ``training`` (loss, gradients and update as one graph), ``bert``, ``gpt``,
``llama`` and ``resnet``.
"""
