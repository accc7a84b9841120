"""Programs to read and run: ``python -m examples.<name>``.

Reading order: ``seeds`` (the two programs of MindSpore's tutorial), ``minilm`` (a sentence encoder's weights and
tokenizer), ``export_minilm_onnx`` (the same as an ONNX file), ``resnet50``, ``demo`` (both nets against onnxruntime),
``training_step`` (a classifier is trained, forward, backward and update in one executable).
``networks`` holds whole networks built with our functions, training steps included; ``benchmarks networks`` counts them.
"""
