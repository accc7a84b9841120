"""Names from files inside of lines that people read: nothing in them ends a line, or moves a terminal's cursor."""

from __future__ import annotations

import json


def one_line(text: str) -> str:
    """The text; where it holds control characters or line breaks, with those written out as in JSON."""
    return text if text.isprintable() else json.dumps(text)[1:-1]
