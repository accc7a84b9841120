"""Our operators as ONNX nodes: one table for the regions that onnxruntime runs and for whole models that go out.

``writer`` collects nodes, constants and extents; ``arithmetic``, ``reductions``, ``indexing``, ``moves``, ``network``,
``convolution_gradients`` and ``communication`` hold the forms by family; ``table`` finds the form of an operator.
"""
