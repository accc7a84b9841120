"""onnxruntime as host library: regions of operators as ONNX models, its sessions and their threads.

Reading order: c_interface, clips, biases, epilogues, node_writer, sessions, region_step, shape_nodes, operator_nodes,
unsigned, regions, whole_model.
"""
