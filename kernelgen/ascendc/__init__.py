"""AscendC: its types, calls, expressions and statements; printed, and read back from the text.

Reading order: errors, expressions, instructions, intrinsics, scopes, tokens, types, clocks, conversions, builder,
expression_reader, pipes, printer, reader.
"""
