"""One rule per ONNX operator: how it is said in our operators.

Reading order: ``base`` (what a rule is and what it is given), ``arithmetic``, ``logic``, ``positions``, ``shape``,
``grid_sample``, ``reduction``, ``normalization``, ``activation``, ``losses``,
``linear`` (products, convolution, pooling),
``volumes`` (convolution along three axes), ``einsum`` (sums over named axes), ``quantized`` (products of integers),
``attention``, ``group_query``
and ``joined`` (what onnxruntime's optimizer of transformers writes), ``random`` (drawn numbers),
``tabular`` (scikit-learn's pipelines) and ``communication`` (collectives), of other domains,
``extents`` (what is known of shape tensors; ``float_extents`` where they go through floats), ``result_shapes`` (of operators
without a rule, where ONNX's inference gives up) with ``windows``.

An operator without a rule, or whose rule declines, is written out as ONNX does, if all of that has rules; else it becomes the
generic ``Onnx`` operator and runs on onnxruntime.
"""
