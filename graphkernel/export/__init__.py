"""A fused graph as files that somebody else runs: an ONNX model for any runtime, or kernels for Ascend cards.

ONNX, in reading order: ``onnx_file`` (writes the file, large weights beside it), ``onnx_model`` (the graph: kernels become
functions), ``onnx_scope`` (names, constants and extents of one body of nodes), ``onnx_nodes`` (one operator as nodes; their
forms are in ``graphkernel.onnx_writing``).

Ascend: ``network`` (the graph as data: what runs in which order), ``summary`` (what is known of each kernel, and of the
network, as data, JSON and HTML), ``kernels`` (makes and writes all of it).
"""
