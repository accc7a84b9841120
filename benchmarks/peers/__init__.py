"""Programs that run with another framework's interpreter, and whose result files are committed.

``mindspore_counts`` counts what MindSpore launches for the networks of ``examples.networks``, which ``mindspore_nets``
builds from its layers; ``saved_graph`` reads the graphs that it saves; ``mindspore_race`` times both sides.
``exported_models`` exports networks of transformers to ONNX, which ``benchmarks.exported`` reads;
``transformers_at_size`` and ``images_at_size`` those of usual sizes, which ``exports`` writes and
``benchmarks.whole_networks`` measures. ``published_models`` collects the files that others have published,
``architectures`` exports more: ``benchmarks.models`` runs both.
"""
