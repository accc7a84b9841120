"""Operators that a host library computes.

Reading order: attention_cache, communication, conv_gradients, counter_random, grouped_products, host_bodies, host_values,
host, linear_algebra, places, random, windows.
"""
