"""From a graph to a plan: steps in order, slots, lives of buffers, and the invariants of that.

Reading order: placement (who runs what), known_numbers, make_steps, waits, storage (slots that share memory), late_writes,
buffers, segments, plan, verify_plan.
"""
