"""Steps that are kernels of ours as one table of machine code, so that nothing of Python runs between them.

Reading order: slot_facts, session_call (regions of a library between kernels), watch, bind_table, results, native_run.
"""
