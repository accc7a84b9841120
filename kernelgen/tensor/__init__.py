"""The tensor IR of both packages: types, operators, immutable graphs; their text, meaning and invariants.

Rooms: evaluation, operators.
Reading order: compare, constant_data, dims, attrs, dtypes, names, types, boxes, computed, derived, bind, elements,
literals, algebra, operator, printer, graph, definitions, inline, origin, scanner, parser, text, verify.
"""
