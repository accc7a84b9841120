"""The frame of a page: one file that needs nothing else, in the colours that the reader prefers."""

from __future__ import annotations

import json
from importlib.resources import files

from kernelgen.system.escape import markup

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src 'self' data: file:"
"""Nothing is fetched: pictures beside the page are all that it may show."""


def page(title: str, body: str, data: object = None) -> str:
    """A whole page with this ``title`` and ``body`` (HTML). ``data`` is JSON for its script."""
    holder = "" if data is None else f'<script type="application/json" id="data">{_embedded(data)}</script>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{markup(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n{body}\n{holder}\n<script>\n{_asset('page.js')}</script>\n"
        "</body>\n</html>\n"
    )


def _embedded(data: object) -> str:
    """JSON in which no tag or comment can begin."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return (files("graphkernel.report.page") / name).read_text("utf-8")
