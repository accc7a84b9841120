"""From a graph to a plan: steps in order, slots, lives of buffers, and the invariants of that.

Reading order: buffers, segments, plan, verify_plan.
"""
