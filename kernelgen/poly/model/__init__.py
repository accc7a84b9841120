"""The polyhedral model of a kernel: statements over boxes of integers, what they read and write, and their dependences.

Reading order: axes, contexts, factored_axes, scop, equal_axes, product_recognition, window_recognition, register_cost,
size_products, statement_pairs, relations, text.
"""
