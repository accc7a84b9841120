"""Names and messages on their way out: each format takes them for text and for nothing else. One function for a format.

    line(text)      a log line, a cell of a table on a terminal: no line breaks, no controls, no change of direction
    lines(text)     a message or page on a terminal: as line, with its line breaks
    markup(text)    the text of an element or attribute of HTML and SVG

What cannot be printed is written as Python escapes it: a name with a line break in it says ``\\n``.
"""

from __future__ import annotations


def line(text: str) -> str:
    """One line of what can be printed."""
    return text if text.isprintable() else _printable(text, "")


def lines(text: str) -> str:
    """What can be printed, and line breaks and tabs."""
    return text if text.isprintable() else _printable(text, "\n\t")


def markup(text: str) -> str:
    """Text between tags, and between the quotes of an attribute."""
    from html import escape  # only pages need it

    return escape(lines(text), quote=True)


def _printable(text: str, kept: str) -> str:
    return "".join(each if each.isprintable() or each in kept else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
