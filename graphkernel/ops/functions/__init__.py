"""Python signatures of operators with attributes or defaults.

Reading order: device, fused, pointwise, shape, storage, training.
"""
