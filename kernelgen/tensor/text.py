"""The text form of graphs: :func:`show` writes it, :func:`parse` reads it, and ``parse(show(g), ops) == g``.

::

    text       = { "kernel" block } "graph" block
    block      = name "(" [ typed { "," typed } ] ")" [ "where" extent { "," extent } ]
                 "{" { statement } "return" [ output { "," output } ] "}"
    extent     = name "=" function "(" dim "," dim ")"    h = floor_div(H + 1, 2); also windows, min, max, broadcast,
                 from_front
    typed      = name ":" type                          x: f32[N, 2*M + 1]@NHWC
    statement  = "const" typed "=" ( "[" elements "]" | digest )
               | typed { "," typed } "=" name "(" [ argument { "," argument } ] ")"
    argument   = name | literal [ ":" dtype ] | name "=" attribute      operands stand before attributes
    output     = [ name "=" ] ( name | literal ":" dtype ) [ "->" name ]
    attribute  = number | dim polynomial | "text" | True | False | None | "(" [ attribute { "," attribute } ] ")"
    name       = letters, digits, "_" and "."; anything else in double quotes

The name before the parenthesis of a statement is a kernel above or an operator. Outputs have names, all of them or none;
one with ``->`` is written into the buffer of that input. A scalar constant stands where it is
used; without suffix it has the data type of the first named operand. Other constants of at most 16 elements are
written out in row-major order, larger ones by digest (``sha256:...``); ``parse`` takes their content as ``weights``.
Floats are the shortest decimals that read back to the same bits; ``inf``, ``-inf``, ``nan``, and a NaN with other bits
as ``nan(0x7fc00001)``. Line breaks mean nothing; ``#`` starts a comment.
"""

from kernelgen.tensor.parser import parse
from kernelgen.tensor.printer import show

__all__ = ["parse", "show"]
