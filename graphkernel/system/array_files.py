"""Arrays in ``.npz`` files, read within bounds: no pickles, and no archive that unpacks to far more than it is."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from kernelgen.system.bounded_io import Wrong
from kernelgen.system.limits import LIMITS

MAGIC = b"\x93NUMPY"


def read_arrays(path: Path, wrong: Wrong) -> dict[str, np.ndarray]:
    """All arrays of a file by name. Raises ``wrong``, with the file and what is wrong with it.

    An archive may unpack to its own size, or to ``LIMITS.unpacked_bytes`` where that is more.
    """
    try:
        if not path.is_file():
            raise OSError("not a regular file")
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_size(sum(entry.file_size for entry in entries), path.stat().st_size)
            for entry in entries:
                _check_array(archive, entry)
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as error:  # zipfile, zlib, tokenize and numpy have no common class
        raise wrong(f"{path}: not an .npz file that can be read: {error}") from error


def _check_size(unpacked: int, packed: int) -> None:
    if unpacked > max(packed, LIMITS.unpacked_bytes):
        raise ValueError(
            f"unpacked it has {unpacked} bytes, at most {LIMITS.unpacked_bytes} are; numpy.savez writes without packing"
        )


def _check_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Refuses what is no array, or says to be larger than it is: numpy would ask for that memory first."""
    with archive.open(entry) as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{entry.filename} is not an array")
        major, _ = stream.read(2)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, kind = read(stream)
    if kind.hasobject:
        raise ValueError(f"{entry.filename} holds Python objects, which are never read")
    if any(extent < 0 for extent in shape) or np.prod(shape, dtype=object) * kind.itemsize > entry.file_size:
        raise ValueError(f"{entry.filename} says to have the shape {shape}, and is smaller")
