"""The engine of clustering and splitting: which operators become one kernel.

Reading order: ascend_checks, fuse_nodes, boundary, iteration_space, liveness, merge_dag, maximal_clusters, naming,
ops_lists, own_pieces, product_cost, stored_weights, own_products, rows, convolution_cost, attention,
parallel_cost, split_models, area, cost, partition, grow_areas, sections, recompute.

- ``reach``      a graph whose nodes merge: would this merge close a cycle?
- ``contract``   maximal connected acyclic sets of clusterable operators
- ``space``      the shape of an iteration: which dims a reduction removes, which a broadcast adds
- ``area``       Area, Link and FusionPattern: what a fusion pattern sees and says
- ``partition``  the areas of one cluster, their links, and merging
- ``model``      per-target limits and the order of the patterns
- ``cost``       bytes moved, copies, rows to share: figures and objections
- ``sections``  what growth joins nothing across: parts of a body that grow apart, equal ones once
- ``recompute``  cheap values that are computed in each kernel that needs them
- ``grow``       the loop: propose, check, merge, until nothing changes
- ``naming``     kernel names that are true to content
- ``extract``    groups of nodes -> fused nodes, and back
- ``boundary``   operands of kernels: none twice, none in vain, tensor constants among them
- ``liveness``   bytes that are alive between operators, and which values share memory
- ``parallel_cost``  what kernels weigh side by side: blocks, and bytes a block
- ``ops_lists``  which operators are clusterable on which target, at which level
- ``own_pieces``  which pieces stay with the convolutions of a library beside them, and which gathers are kernels of a CPU
- ``product_cost``  what a product with constant weights costs as a kernel and in a library
- ``convolution_cost``  what a region of an image network costs as kernels and in a library
- ``stored_weights``  which weights are narrower in memory than products compute with
- ``own_products``  which products are kernels of a CPU, and which operands are laid out before all calls
- ``rows``     which kernels compute each row by itself, and which of their values have rows
- ``attention``  the two products of an attention, and what lies between them
- ``ascend_checks``  data types, ranks and attributes that Ascend kernels take, for each operator
"""
