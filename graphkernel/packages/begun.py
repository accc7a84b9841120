"""Sessions over weights of a package's file, opened on a thread while numpy loads: they take addresses, no arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from graphkernel.errors import PackageError, RuntimeFailure
from graphkernel.packages.container import PackageReader
from graphkernel.packages.manifest import WEIGHTS, Manifest
from graphkernel.runtime.onnxruntime.c_interface import ALL_OPTIMIZATIONS, Lent, SharedSession
from graphkernel.runtime.onnxruntime.sessions import shared_session
from kernelgen.system.bounded_io import json_value
from kernelgen.system.meanwhile import Meanwhile

_LENGTH_BYTES = 8
_BUFFER_WORDS = 16  # a Py_buffer is smaller on every machine; the address comes first in it


def begun_sessions(
    package: PackageReader, manifest: Manifest, threads: int | None
) -> Meanwhile[Mapping[str, SharedSession]]:
    """The sessions on ``threads`` of those regions of a ``package`` and its ``manifest`` whose weights all lie in the file, by
    their models' names, as they are opened. Meanwhile all weights are held against their checksum, on a thread that this one
    starts: whoever starts a thread waits until it runs, which takes long while the library is made.

    The result raises PackageError and RuntimeFailure as :func:`graphkernel.packages.lent.opening`.
    """

    def open_checked() -> Mapping[str, SharedSession]:
        with Meanwhile(partial(package.check_sum, WEIGHTS)) as check:
            found = open_all()
            check.result()
        return found

    def open_all() -> Mapping[str, SharedSession]:
        if not (package.is_mapped and manifest.regions):
            return {}
        lent, found = _lent(package.view(WEIGHTS)), dict[str, SharedSession]()
        for region in manifest.regions:
            if not region.has_objects and all(digest in lent for _, digest in region.weights):
                weights = {name: lent[digest] for name, digest in region.weights}
                content = package.content(region.model, manifest.digests)
                try:
                    found[region.model] = shared_session(content, weights, threads, ALL_OPTIMIZATIONS)
                except Exception as error:  # onnxruntime raises many classes of its own
                    raise RuntimeFailure(f"onnxruntime cannot run {region.model}: {error}") from error
        return found

    return Meanwhile(open_checked)


def _lent(content: memoryview) -> Mapping[str, Lent]:
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    try:
        header = cast("dict[str, Any]", json_value(bytes(content[_LENGTH_BYTES:start]).decode(), PackageError))
        base, room = _address(content) + start, len(content) - start
        found = {name: (*entry["data_offsets"],) for name, entry in header.items()}
        if not all(0 <= first <= last <= room for first, last in found.values()):
            raise ValueError("arrays beyond the end")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PackageError(f"weights whose header does not fit them: {error}") from error
    return {name: Lent(base + first, last - first, content) for name, (first, last) in found.items()}


def _address(content: memoryview) -> int:
    """Where bytes lie that nobody may write."""
    buffer = (ctypes.c_void_p * _BUFFER_WORDS)()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(content), buffer, 0)
    address = buffer[0] or 0
    ctypes.pythonapi.PyBuffer_Release(buffer)
    return address
