"""The tensor IR of both packages: types, operators, immutable graphs; their text, meaning and invariants.

Rooms: evaluation, operators.
Reading order: compare, constant_data, dims, attrs, dtypes, names, types, boxes, derived, bind, elements,
literals, algebra, operator, printer, graph, definitions, inline, order, origin, scanner, parser, text, verify.
"""
