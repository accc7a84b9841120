"""PTX text as frozen values.

Reading order: errors, nodes, add_with_carry, tokens, cursor, types, declarations, inline_calls, kernel_body, parser.
"""
