"""Operators as statements of a scop, one family a file.

Reading order: points, builder, lowering, assign, convolution, copies, indexing, pointwise, products, stored_products, layouts,
random, reductions, repeats, scans, slices, sparse, elements, table.

What is refused, with the reason code, and why it has to be:

unsupported-op       Custom, UserDefined: they hold source code, which is not run
unsupported-dtype    complex numbers in operators that no rule of complex_parts names: they have no order, and a product of
                     many or a transcendental function is none of their parts
unsupported-layout   FRACTAL_Z and other layouts that no word of capitals and blocks spells, Conv2D other than NCHW, NHWC and
                     NCHWc; ids of GatherNd and TensorScatterAdd whose last extent is a symbol: it decides about ranks;
                     places that data or padding decides in a dim that may be empty (``n - 1``): there may be none to read
unsupported-attr     a slice of a symbolic dim whose number of elements is no polynomial of the size (``x[3:]``, ``x[::2]``)
"""
