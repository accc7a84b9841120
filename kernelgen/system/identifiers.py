"""Names that people give, as identifiers for text that a compiler reads, and as file names.

    identifier("input_0")             input_0
    identifier("x\\n__global__ ...")   x___global______6c1f0a3b5d7e9f21

A given name is data: it may hold line breaks, quotes, code. What is printed comes from ``[A-Za-z0-9_]`` alone; the name as
it was given stands in reports, messages and JSON.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable

MOST = 200
"""Characters of an identifier. Fused kernels of networks have 112 and less; a file name with endings may have 255."""
_HEAD, _DIGITS = 40, 16
_PLAIN = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MOST - 1}}}")


def identifier(name: str) -> str:
    """The name itself where it is an identifier of bounded length; else its start, cleaned, with a digest of all of it."""
    if _PLAIN.fullmatch(name):
        return name
    head = re.sub(r"[^A-Za-z0-9_]", "_", name[:_HEAD])
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{'' if re.match('[A-Za-z_]', head) else '_'}{head}_{digest}"


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Each given name -> its identifier, all different. Raises ValueError where two names would be one."""
    found = {name: identifier(name) for name in names}
    owners: dict[str, str] = {}
    for name, plain in found.items():
        if owners.setdefault(plain, name) != name:
            raise ValueError(f"the names {owners[plain]!r} and {name!r} are both {plain} in code")
    return found


def beside(name: str, taken: Container[str]) -> str:
    """An identifier that is no word of a language, and still differs from all others: one more underscore behind it."""
    plain = identifier(name)
    return f"{plain}_" if plain.rstrip("_") in taken else plain


def comment(text: str) -> str:
    """Any text as one line of a comment: nothing in it ends the comment, or continues it in the next line."""
    line = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    return line.replace("*/", "* /").replace("??/", "?? /").rstrip("\\ ")
