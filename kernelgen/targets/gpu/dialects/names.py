"""Names in the printed program: those of the nest, but for words that a language has taken."""

from __future__ import annotations

from kernelgen.system.identifiers import beside

WORDS = """
alignas alignof and asm auto bool break case catch char class const continue default delete do double else enum
explicit export extern false float for friend goto if inline int long mutable namespace new not operator or private
protected public register restrict return short signed sizeof static struct switch template this throw true try
typedef typeid typename union unsigned using virtual void volatile wchar_t while xor item flat turn first lane lanes
other bx tx ty kernel global local constant generic half uchar ushort uint ulong event_t sampler_t pipe uniform complex
imaginary quad read_only write_only read_write y0 y1 yn j0 j1 jn floor ceil trunc rint sqrt rsqrt exp expm1 log log1p tanh
erf erfc sin cos tan sinh cosh asin acos atan asinh acosh atanh pow atan2 fmod copysign fabs barrier shared_memory
"""
TAKEN = frozenset(WORDS.split())


def spelled(name: str) -> str:
    """The name as an identifier that means nothing else in any dialect; different names stay different."""
    plain = beside(name, TAKEN)
    return (
        f"n{plain}" if plain.lstrip("n").startswith("__") else plain
    )  # two underscores begin the compilers' own names
