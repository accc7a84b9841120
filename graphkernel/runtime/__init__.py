"""Running an optimized graph: kernels, host libraries, buffers.

Rooms: cuda, inputs, onnxruntime, plan, steps, tables.
Reading order: failures, kernel_cache, memory, invocation, executable, measure, peak_memory, poison,
verify_table.
"""
