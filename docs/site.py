"""What mkdocs does to each page: links to files that are not pages go to the repository, and so do those from the README."""

from __future__ import annotations

import re
from typing import Any

REPOSITORY = "https://github.com/graphkernel/graphkernel/blob/main/"


def on_page_markdown(markdown: str, **_: Any) -> str:  # as mkdocs calls it
    """The text of a page, before it is read."""
    return re.sub(r"\]\(\.\./", f"]({REPOSITORY}", markdown)
