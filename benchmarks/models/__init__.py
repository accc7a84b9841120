"""Real models, as people bring them: which load, agree with onnxruntime, and what they take beside it.

Reading order: ``draw`` (inputs that onnxruntime takes), ``nudge`` (the same, and weights, one unit in the last place away),
``contestant`` (one side on one model, in a process of its own), ``judge`` (how far results are apart), ``__main__`` (all
models of a folder, and the record).
"""
