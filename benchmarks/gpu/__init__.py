"""Speed on a CUDA device: ``python -m benchmarks gpu --json OUT``; one command does all of it in under eight minutes.

Reading order: ``cases`` (a class of kernels each), ``timing`` (what a device takes, by its own clock), ``contestants`` (ours,
torch.compile, eager), ``classes`` (one class after the other in a process of its own), ``correctness`` (the catalogue and the
corpus), ``run`` (the parent: budgets, restarts, the record); ``estimates`` (the classes by the model, where there is no
device), ``v100`` (AKG's published times beside estimates of ours).

Without a device too: ``descriptions`` (kernels of the catalogue, of random graphs, networks and the corpus), ``compiles`` (what
each takes on every architecture, within a budget), ``networks`` (whole networks, kernel by kernel in the interpreter).
"""
