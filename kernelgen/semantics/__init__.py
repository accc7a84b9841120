"""What a description means, in numpy: the reference that kernels are compared with.

Reading order: algebra, reduce, shape, index, layout, matmul, convolution, random, slice, sparse, table, reference.
"""

from kernelgen.semantics.reference import Reference, reference

__all__ = ["Reference", "reference"]
