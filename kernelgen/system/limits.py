"""What a file may ask of the machine that reads it: one frozen value for every door.

A model of 300 bytes can ask for terabytes (``Expand``, ``Range``), for exponential time (doublings of a symbol), or for
more stack than there is (nesting). Whatever a user gives to ``load``, ``parse``, ``load_desc``, flags and plans is held
against these bounds before anything is computed.
"""

from __future__ import annotations

from kernelgen.system.named_tuples import NamedTuple


class InputLimits(NamedTuple):
    """Upper bounds, each for one file. Going beyond one is an error of the loader that names the place and the bound."""

    model_bytes: int = 2 << 30
    """Of a model in binary form, without the data beside it: what the format can hold."""
    text_bytes: int = 64 << 20
    """Of a text: graphs, configurations."""
    json_characters: int = 4 << 20
    """Of a JSON text: composite kernels, plans, flag files. What Python makes of one takes 25 times as much."""
    unpacked_bytes: int = 1 << 30
    """Of an archive of arrays that is smaller than what it holds."""
    nesting: int = 64
    """Of JSON, attributes, expressions and bodies inside of each other."""
    nodes: int = 1_000_000
    """Of a graph, those of its bodies included."""
    rank: int = 32
    """Of a tensor: what numpy 1 could hold, and more than any model has."""
    constant_elements: int = 1 << 26
    """Of one constant that is computed from smaller ones while a model is read or optimized."""
    folded_bytes: int = 256 << 20
    """Of all such constants of one model together, beyond what its own constants take."""
    symbol_terms: int = 256
    """Products that a symbolic extent may be the sum of."""
    symbol_degree: int = 64
    """Factors of one such product."""
    object_bytes: int = 256 << 20
    """Of a compiled object in the cache."""


LIMITS = InputLimits()
