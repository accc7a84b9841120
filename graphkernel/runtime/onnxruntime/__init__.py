"""onnxruntime as host library: regions of operators as ONNX models, its sessions and their threads.

Reading order: c_interface, environment, clips, biases, epilogues, initializers, sessions, region_step,
unsigned, regions, whole_model.
"""
