"""Real models, as people bring them: which load, agree with onnxruntime, and what they take beside it.

Reading order: ``collect`` (puts such models into a folder), ``draw`` (inputs that onnxruntime takes), ``contestant`` (one
side on one model, in a process of its own), ``judge`` (how far results are apart), ``__main__`` (all models of a folder, and
the record).
"""
