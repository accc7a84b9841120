"""Passes: pure functions from graph to graph, one per file, named as MindSpore names them where it has them.

Reading order: ``base`` (Pass, Step, Context, the loop), then in pipeline order ``cse``, ``expand``, ``fold``, ``cluster``,
``redundant_output``, ``axis_normalizer``, ``simplify``, ``split``, ``seal``. Where each stands, from which level on and why is
said in one place, :mod:`graphkernel.pipeline`.
"""
