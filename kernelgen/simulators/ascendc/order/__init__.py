"""What is known to be over: vector clocks, flags, meetings of cores, who touched global memory.

Reading order: vector_clocks, core_flags, flags, event_log, global_memory.
"""
