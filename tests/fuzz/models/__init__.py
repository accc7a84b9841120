"""Random ONNX models and how they are judged.

Drawing: ``contents`` (numbers), ``draft`` (a model while it is drawn), the recipes ``elementwise``, ``reductions``,
``movement`` and ``networks``, ``recipes`` (all of them, and what is left out), ``sample`` (a model with sets of inputs).
Judging: ``oracle`` (onnxruntime, node by node), ``compare`` (how near is near enough), ``mistakes`` (known ones of
onnxruntime), ``triage`` (who is right where results differ).
"""
