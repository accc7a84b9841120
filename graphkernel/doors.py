"""How texts come in and files go out: kernelgen's doors, which hold for graphs as well. See :mod:`kernelgen.doors`."""

from __future__ import annotations

from kernelgen.doors import UNFIT, Wrong, check_json, json_value, opened, read_bytes, read_text, write_whole, writing

__all__ = ["UNFIT", "Wrong", "check_json", "json_value", "opened", "read_bytes", "read_text", "write_whole", "writing"]
