"""LLVM assembly while it is written: values, types, functions, what is in scope.

Reading order: host, builder, values, counting, formats, integers, casts, scope, indices, outline_function.
"""
