"""Matrix products on the cube unit: which parts of a nest are products, how they are cut, what a cube core does.

Reading order: product (recognised in a part of the nest), finish (what Fixpipe does on the way out), sizes (tiles that
fit, by estimated time), follow (vector work in the order of tiles), plan (which part runs on which cores, where they
meet), program (copies, loads, Mmad, Fixpipe), reach (bytes that an instruction writes, for the order proof), kernel (all
of a cube core).
"""
