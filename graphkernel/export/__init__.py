"""A fused network as files that somebody else runs: kernels for Ascend cards, which cannot run here.

Reading order: ``network`` (the graph as data: what runs in which order), ``summary`` (what is known of each kernel, and of
the network, as data, JSON and HTML), ``kernels`` (makes and writes all of it).
"""
