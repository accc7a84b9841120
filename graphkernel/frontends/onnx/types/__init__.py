"""ONNX's types as ours, and arithmetic of extents beyond polynomials.

Reading order: derived_extents, types.
"""
