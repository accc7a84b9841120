"""ONNX's own tests of its operators, run through graphkernel: ``python -m tests.onnx_node_tests --level 2``.

Reading order: cases (what ``onnx.backend.test`` holds), check (one case: passed, refused, wrong or internal), opinion (what
onnxruntime says where an answer is not the expected one), reasons (why a case was refused, in a few words).
"""
