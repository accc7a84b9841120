"""Passes: pure functions from graph to graph, one per file, named as MindSpore names them where it has them.

Reading order: ``base`` (Pass, Step, Context, the loop), then in pipeline order ``cse``, ``expand``, ``fold``,
``cluster``, ``redundant_output``, ``axis_normalizer``, ``simplify``, ``split``, ``seal``. Data types:
``raise_reduction_precision``, ``reorder_ops``, ``convert_bfloat16``, ``decrease_transfer_precision`` and
``decrease_compute_precision``, the last and bfloat16 by ``recast``. Formats: ``transform_op_optimizer`` with
``format_kinds``, ``format_regions``, ``format_cut`` and ``minimum_cut``, ``shape_ops_splitter``,
``shrink_only_shape_needed``. Products: ``transpose_matmul_fusion``,
``cast_matmul_fusion``, ``insert_pad_ops``. Idioms:
``floatstatus_fusion``, ``floatstatus_addn_fusion``. Memory: ``graph_kernel_recompute``, ``atomic_clean``,
``stitch_atomic_clean``, ``csr_atomic_add_process``, ``tensor_inplace``, ``optimize_assign``,
``compact_tensor_liveness``. Side by side: ``graph_kernel_op_combiner`` (products), ``parallel_fusion`` (kernels).
Whole idioms: the room ``fusion_group``, which runs first, and ``named_kernels``, which weighs what it found.
Shapes: ``shape_values`` (tensors that say shapes) and
``kernel_packet``, which runs last. ``absorbed`` holds those of MindSpore for which there is nothing to do here. Where
each stands, from which level on and why is said in one place, :mod:`graphkernel.pipeline`.
"""
