"""Operators that expanders rewrite into basic ones.

Reading order: activation, arithmetic, exact, activation_ext, clipping, extremes, gradients, losses, moments,
batch_normalization, norm_gradients, normalize, optimizers, softmax_gradients, split_sizes, sums.
"""
