"""From a nest to a kernel for vector cores, one pass a file.

Reading order: writer (tiles and statements), indices, values, casting, lanes (a turn of a vector loop), operations (scalar
functions), counting (lanes that count), fold (a tile becomes one lane), promote (the nest becomes copies and
instructions); uses (what a statement touches), copies (their order), double_buffer, storage (addresses); tree (statements
with identity), trace (the order proof), synchronise (flags and barriers); assemble (all of it).
"""
