"""Running an optimized graph: kernels, host libraries, buffers.

Reading order: ``arrays`` (what comes in, and the same kind out), ``samples`` (inputs from files, or random), ``buffers``
(liveness and one arena), ``steps`` (what a plan is made of), ``host`` (which library runs what no kernel computes; numpy),
``onnx_writer``, ``onnx_shapes`` and ``onnx_text`` (our operators as ONNX nodes), ``regions`` (onnxruntime over whole
regions), ``plan`` (graph to steps), ``frame`` (a plan with its buffers for given shapes), ``executable`` (the callable),
``measure`` (how long calls and steps take), ``kernel_cache`` (the files of compiled kernels).
"""
