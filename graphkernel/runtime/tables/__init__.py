"""Steps that are kernels of ours as one table of machine code, so that nothing of Python runs between them.

Reading order: slot_facts, bind_table, results, native_run.
"""
