"""What devices of many threads are like: sizes, limits, instructions; and for a few of them, rates and latencies.

Reading order: device, timed.
"""
