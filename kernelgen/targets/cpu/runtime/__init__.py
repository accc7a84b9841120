"""Text to machine code to callables, through llvmlite, in this process or in one of its own.

Reading order: llvm, compiler_process, isolated, objects, faults, team, wrapper_ir, session_ir, entry.
"""
