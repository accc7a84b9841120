"""The other end of :mod:`kernelgen.made_elsewhere`: a description in, machine code and what is told of it out."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from typing import Any

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.vocabulary import WORDS
from kernelgen.driver import compile
from kernelgen.errors import UnsupportedError
from kernelgen.kept_kernels import keep
from kernelgen.kernel import Kernel
from kernelgen.made_elsewhere import Order
from kernelgen.native.code import Code
from kernelgen.native.records import code_items, code_of, entry_of, kernel_items
from kernelgen.system.json_parts import Items
from kernelgen.tensor.text import parse

_OPERATORS = {word.name: word for word in WORDS}


def answer(request: bytes) -> bytes:
    """The kernel of a request as JSON, or why there is none. Raises what compiling raises, but for UnsupportedError."""
    text, constants = json.loads(request)
    start = time.perf_counter()
    order = Order(KernelDesc(parse(text, _OPERATORS)), constants)
    try:
        kernel = compile(order.desc, "cpu", constants=order.constants)
    except UnsupportedError as error:
        return json.dumps({"code": error.code, "why": str(error).removeprefix(f"[{error.code}] ")}).encode()
    told = told_of(kernel, (time.perf_counter() - start) * 1e3)
    keep(order, lambda: told)
    return told


def told_of(kernel: Kernel, milliseconds: float) -> bytes:
    """What :func:`kernelgen.made_elsewhere.read_told` makes a ``kernel`` of that took so many ``milliseconds``, as JSON."""
    return json.dumps({**_told(kernel), "milliseconds": milliseconds}).encode()


def _told(kernel: Kernel) -> dict[str, Any]:
    content = bytearray()
    entry = entry_of(kernel)

    def kept(code: Code | None) -> Items | None:
        if code is None:
            return None
        record = code_items(code, len(content))
        content.extend(code.content)
        return record

    both = (kernel, *(() if kernel.preparation is None else (kernel.preparation,)))
    teams = (entry_of(made).team for made in both)
    caller = kept(entry.caller.code)
    team = kept(next((each.library.code for each in teams if each is not None), None))
    kernels: list[Items] = []
    for made in both:
        kernels.append(kernel_items(made, len(content)))
        content += code_of(made).content
    return {
        "kernels": kernels, "content": b64encode(content).decode(), "caller": caller, "team": team, "flags": entry.flags,
        "prepares": kernel.prepares, "taken": kernel.taken,
        "cached": kernel.cached, "proof": str(kernel.proof), "source": kernel.source,
    }  # fmt: skip
