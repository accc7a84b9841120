"""Patterns: equations that rewrite operators, and fusion patterns that say which areas share a kernel.

Reading order: ``language`` (terms, rules, safety), ``terms`` (operators as functions on terms), ``ranges`` (what is known of
values), ``folding``, ``match`` (one rule against one node), ``drive`` (all rules to a fixpoint); then the equations, a file for
each topic: ``arith_add``, ``arith_mul``, ``arith_power``, ``arith_exp``, ``arith_logic``, ``arith_complex``, ``layout``,
``arith_reduce``, ``arith_matmul``; then the fusion patterns: ``fusion_elemwise``, ``fusion_reduce``, ``fusion_reshape``,
``fusion_index``, ``fusion_stencil``, ``fusion_matmul``, ``fusion_image``, ``fusion_attention``, ``fusion_horizontal``.

Rules for writing rules
- The right side is never dearer than the left, counted in elements touched; a test counts.
- Claim what is true: EXACT means the same bits, zeros, infinities and NaN included. A test tries to refute every claim,
  and refuses DOMAIN where ROUNDING would be true.
- Integers wrap around but do not round: give their promise apart with ``integers=``.
- No rule for another order of commutative operands; the matcher tries both. Constants stand on the right.
- No rule that undoes another one. One topic per file; no comment that repeats the equation.
"""
