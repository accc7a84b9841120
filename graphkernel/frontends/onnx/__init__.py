"""ONNX models as graphs.

Rooms: rules, types.
Reading order: bodies, builder, functions, nodes, check, external_data, symbols, generic, weights, rule_table, importer.
"""
