"""Ways in: Python functions, files, ONNX models.

Reading order: ``trace`` (Python functions), ``jit`` (the same, compiled on first use),
``differentiate`` (functions and graphs to their gradients), ``onnx`` (ONNX models, which ``onnx_check`` looks at first, and
``onnx_external`` at the data beside them) with the room ``onnx_ops`` (one rule per ONNX operator), ``onnx_generic``
(operators without a rule) and ``onnx_types`` (types of both
sides), ``load`` (files of every kind, by extension).
"""
