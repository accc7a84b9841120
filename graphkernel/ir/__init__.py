"""The graph: what passes between all rooms.

Reading order: ``types`` (dims, data types, tensor types), ``opdef`` (what an operator is), ``graph`` (nodes, values,
graphs, the builder), ``names`` (which one is meant),
``compare`` (structural equality), ``text`` (the text form: grammar; ``printer`` writes it,
``scanner`` and ``parser`` read it, ``literals`` spells numbers), ``boxes`` (values that are no arrays),
``elements`` (ONNX's numbers of data types),
``definitions`` (symbols that operators define),
``verify`` (numbered invariants), ``derived`` (extents that follow from others), ``bind`` (symbols get
values), ``computed`` (how much may be computed early), ``inline`` (fused nodes as operators
again), ``evaluate`` (the numpy meaning), ``widened`` (the same in float64).
"""
