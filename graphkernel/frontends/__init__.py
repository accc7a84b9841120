"""Ways in: Python functions, files, ONNX models.

Reading order: ``structure`` (containers of arguments and results), ``trace`` (Python functions), ``arguments`` (what a call
gives), ``extents`` (those that change between calls), ``jit`` (functions compiled on first use),
``differentiate`` (functions and graphs to their gradients), ``onnx`` (ONNX models, which ``onnx_check`` looks at first,
``onnx_nodes`` at the order of their nodes, and ``onnx_external`` at the data beside them; ``onnx_weights`` reads the
weights) with the room ``onnx_ops`` (one rule per ONNX operator), ``onnx_functions`` (operators that ONNX
writes out in simpler ones), ``onnx_generic`` (operators without a rule),
``onnx_bodies`` (those with bodies), ``onnx_builder`` (what makes the nodes), ``onnx_types`` (types of both sides) and
``onnx_symbols`` (what extents are called; ``onnx_derived`` computes with them), ``load`` (files of every kind, by
extension) with ``fixed_extents`` (numbers in place of symbols), ``known_models`` (those that were loaded before),
``for_others`` (models for another process).
"""
