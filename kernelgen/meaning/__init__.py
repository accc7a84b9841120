"""What a description means, in numpy: the oracle that every target is compared with.

Reading order: reference (runs a description), algebra (scalar functions on arrays), table (operator -> meaning), then
the families: reduce, shape, slice, index, layout, matmul, convolution, sparse, random.
"""

from kernelgen.meaning.reference import Reference, reference

__all__ = ["Reference", "reference"]
