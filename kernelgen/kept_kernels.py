"""Kernels that this machine has made before: taken from disk whole, with no schedule, proof or text made again.

The cache of machine code knows a kernel by its text, which is most of the work. Here it is known by its description. What is
kept is what :mod:`kernelgen.made_for_others` tells of it, under all that decides (:mod:`kernelgen.surroundings`) and by the
rules of :mod:`kernelgen.system.object_cache`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from zlib import compress, decompress

from kernelgen import options
from kernelgen.made_elsewhere import ElsewhereKernel, Order, read_told, request_of
from kernelgen.native.mapped import is_supported
from kernelgen.surroundings import surroundings
from kernelgen.system.object_cache import cache_key, read_entry, write_entry

ROOM = "kernels"
"""The folder of the cache that they are kept in."""

LEVEL = 1
"""Of compression: a kernel's text is most of its bytes, and a sixth as long in less than a millisecond."""


def recalled(order: Order) -> ElsewhereKernel | None:
    """The kernel of an order, from disk; None where it is not kept, or damaged."""
    start = time.perf_counter()
    folder, key = options.cache_dir(), _key(order)
    content = None if folder is None or key is None else read_entry(folder, ROOM, key)
    if content is not None:
        with suppress(Exception):  # whatever is wrong with what is kept: it can be made again
            told = {**json.loads(decompress(content)), "cached": True}
            return read_told({**told, "milliseconds": (time.perf_counter() - start) * 1e3})
    return None


def keep(order: Order, tell: Callable[[], bytes]) -> None:
    """Keeps the kernel of an ``order``, where text holds all of that; ``tell`` says of it what another process would."""
    key = _key(order)
    if key is not None:
        write_entry(options.cache_dir(), ROOM, key, compress(tell(), LEVEL))


def _key(order: Order) -> str | None:
    request = request_of(order) if is_supported() else None
    return None if request is None else cache_key(request.decode(), surroundings())
