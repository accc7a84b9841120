"""From a nest to a kernel, one pass a file.

Reading order: writer (tiles and statements), indices, values, casting, counting (lanes that count), lanes (elements
that one instruction works on), words (32 bits), reals (float32) and wholes (8 to 64 bits) in formulas; functions,
angles, powers (formulas), integers (whole numbers by words), doubles (float64 by its bits), operations (scalar
functions), fold (many lanes become few), scope (what is known where a statement stands), transfers (loads and stores),
evaluate (expressions, bindings, reductions), fits (which loops are tiles), turns (loops become turns of lanes or rows),
promote (the walk over a nest), certain (branches that always hold); uses (what a statement touches), idle (what a turn
does to no end), unread (what nobody needs is left out), copies (their order), whole_blocks (without DataCopyPad),
double_buffer, banks (alignment), storage (addresses), fitting (how much a turn does); tree (statements with identity),
written_out (what is known of loops and offsets), walk (the turns that are looked at), trace (the order proof), replay
(the same without some flags), synchronise (flags and barriers); element_types (whether the machine has all these
instructions); cube (the room of products on the cube unit), assemble (all of it).
"""
