"""A distributed nest as the text of a program, in every dialect of C for devices.

Reading order: dialect, bfloat16, cuda, hip, names, opencl, program, scalars, expression_printer, printer.
"""
