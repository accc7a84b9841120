"""Speed as ratios in one run: ours, the peers and the machine's limit, interleaved in one process on one pinned thread.

``python -m benchmarks cpu --json OUT``. Reading order: ``case`` (what a benchmark declares), ``cases/`` (one file each),
``contestants`` (who runs it), ``measure`` (rounds and ratios), ``machine`` (what is measured on, and its bandwidth limit),
``corpus`` (a run of ``kernelgen verify`` over many files, short enough to keep), ``cold`` and ``fresh`` (first call in a
fresh process), ``warm_start`` (models from cache and package beside onnxruntime), ``whole_networks/`` (beside other
runtimes), ``training/`` (training steps beside torch's), ``compile_time`` (the stages of compilation over the AKG corpus),
``dynamic`` (one kernel for all sizes against kernels that know theirs), ``products`` (beside onnxruntime's, with their
share of the processor's peak), ``stored_products`` (one row, by what weights are stored as, with their share of the memory's
bandwidth), ``record`` (the JSON and the table), ``run`` (all
cases).
The graph level: ``networks`` (what the levels make of whole networks), ``scale`` (how the time grows with the graph),
``calls`` (what a call costs besides its kernels),
``memory`` (peaks beside onnxruntime's; ``child`` runs what is measured in processes of their own) and
``peers/`` (what other frameworks make of the same networks), ``ascend_networks`` (ONNX networks for Ascend, simulated),
``exported`` (networks of transformers as they are exported, and the named fusions that reach them). On a CUDA device:
``gpu/`` (all of it in one command) and ``device/`` (where there is no package index). ``results/`` holds the runs that
README and docs quote.
"""
