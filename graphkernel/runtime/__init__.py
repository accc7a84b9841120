"""Running an optimized graph: kernels, host libraries, buffers.

Reading order: ``torch_tensors`` and ``arrays`` (what comes in, and the same kind out), ``named_inputs`` (by name, in
order), ``samples`` (inputs from files, or random, with ``index_ranges``: which integers are indices of what), ``buffers``
(liveness and one arena), ``steps`` (what a plan is made of), ``program`` (what running needs of a plan), ``host`` (which
library runs what no kernel computes; numpy), ``epilogues`` (kernels that a library computes within the operator before
them), ``onnx_writer``, ``onnx_shapes``, ``onnx_text``, ``onnx_clips``, ``onnx_biases`` and ``onnx_unsigned`` (our operators
as ONNX nodes), ``onnxruntime_c`` (onnxruntime's C interface), ``freed_memory`` and ``sessions`` (on one pool of threads;
they outlive a fork), ``region_step`` (runs one), ``regions`` (onnxruntime over whole regions), ``segments`` (where a plan
waits for extents), ``plan`` (graph to steps), ``verify_plan`` (what every plan must keep), ``memory`` (where arrays lie),
``poison`` (memory that shows mistakes), ``frame`` (a plan with its buffers for given shapes), ``failures`` (what a failed
step tells), ``executable`` (the callable); on a CUDA device: ``cupy_host`` (the rest on cupy), ``device`` (its memory),
``capture`` (a plan as one CUDA graph), ``device_executable`` (the callable there); ``measure`` (how long calls and steps
take), ``kernel_cache`` (the files of compiled kernels), ``peak_memory``, ``whole_model`` (an ONNX file on onnxruntime as it
is).
"""
