"""A farm on real engines: a dask cluster on loopback, and what happens to it.

Reading order: cluster, faults.
"""
