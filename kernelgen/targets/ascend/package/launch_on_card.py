"""Compiles and runs kernels of this folder on an Ascend card: ``python launch.py NAME.json [MORE.json ...]``.

NOT RUN ON HARDWARE BY US. The library calls follow the published manuals (CANN 8.5 to 9.1), and the project's tests call a
stand-in for the libraries. Reports from owners of a card are welcome.

NAME.json says how NAME.cpp is launched. Where NAME.o is missing, or is not the one that NAME.json was made for, the text is
compiled by the toolkit (libacl_rtc.so, cards of the A2 and A3 series) and both files are written. NAME.npz, or the file after
``--data``, holds an array for each input by its name in NAME.json, and what is expected as ``expected_NAME``.

Needs numpy and the CANN toolkit with its environment (``source set_env.sh``). Exit code 1 where results differ.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

RUNTIME, COMPILER = "libascendcl.so", "libacl_rtc.so"
HUGE_PAGES_FIRST, TO_DEVICE, TO_HOST = 0, 1, 2
MAGIC_OPTION = 2
MAGICS = {
    "RT_DEV_BINARY_MAGIC_ELF": 0x43554245,
    "RT_DEV_BINARY_MAGIC_ELF_AIVEC": 0x41415246,
    "RT_DEV_BINARY_MAGIC_ELF_AICUBE": 0x41494343,
}
TOLERANCES = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-4}

Arrays = Mapping[str, np.ndarray]
Library = Any  # a ctypes.CDLL, or a stand-in with the same functions


class LaunchError(Exception):
    """Something that the card, the toolkit or the data said no to."""


class LoadOption(ctypes.Structure):
    """aclrtBinaryLoadOption: a type, and a union of 16 bytes of which the first word is the value."""

    _fields_ = (("type", ctypes.c_int32), ("value", ctypes.c_uint32 * 4))


class LoadOptions(ctypes.Structure):
    """aclrtBinaryLoadOptions."""

    _fields_ = (("options", ctypes.POINTER(LoadOption)), ("count", ctypes.c_size_t))


def check(name: str, code: int) -> None:
    """Raises LaunchError for a code that is not 0."""
    if code:
        raise LaunchError(f"{name} gave {code}")


# ---------------------------------------------------------------- compiling


def binary_of(path: Path, compiler: Library) -> bytes:
    """The binary of a kernel: NAME.o where its digest is NAME.json's, else compiled anew and written with its digest.

    Raises LaunchError where the text is not the one that was digested.
    """
    meta = read_meta(path)
    made = path.with_name(meta["binFileName"] + meta["binFileSuffix"])
    if made.is_file() and meta["sha256"] == hashlib.sha256(made.read_bytes()).hexdigest():
        return made.read_bytes()
    text = path.with_name(meta["sourceFileName"]).read_bytes()
    if hashlib.sha256(text).hexdigest() != meta["sourceSha256"]:
        raise LaunchError(f"{meta['sourceFileName']} is not the text that {path.name} was made for")
    binary = compile_text(compiler, text, meta["kernelName"], meta["npuArch"])
    write(made, binary)
    meta["sha256"] = hashlib.sha256(binary).hexdigest()
    write(path, (json.dumps(meta, indent=1) + "\n").encode())
    return binary


def compile_text(compiler: Library, text: bytes, name: str, architecture: str) -> bytes:
    """AscendC to a binary. Raises LaunchError with the compiler's log."""
    program = ctypes.c_void_p()
    check(
        "aclrtcCreateProg",
        compiler.aclrtcCreateProg(ctypes.byref(program), ctypes.c_char_p(text), name.encode(), 0, None, None),
    )
    try:
        options = (ctypes.c_char_p * 1)(f"--npu-arch={architecture}".encode())
        if compiler.aclrtcCompileProg(program, 1, options):
            raise LaunchError(f"{name} does not compile:\n{compile_log(compiler, program)}")
        size = ctypes.c_size_t()
        check("aclrtcGetBinDataSize", compiler.aclrtcGetBinDataSize(program, ctypes.byref(size)))
        binary = ctypes.create_string_buffer(size.value)
        check("aclrtcGetBinData", compiler.aclrtcGetBinData(program, binary))
        return binary.raw
    finally:
        compiler.aclrtcDestroyProg(ctypes.byref(program))


def compile_log(compiler: Library, program: ctypes.c_void_p) -> str:
    """What the compiler said."""
    size = ctypes.c_size_t()
    check("aclrtcGetCompileLogSize", compiler.aclrtcGetCompileLogSize(program, ctypes.byref(size)))
    log = ctypes.create_string_buffer(max(size.value, 1))
    check("aclrtcGetCompileLog", compiler.aclrtcGetCompileLog(program, log))
    return log.value.decode(errors="replace")


# ---------------------------------------------------------------- running


@dataclass
class Card:
    """A device with a stream; what is allocated on it is freed when it is left."""

    library: Library
    device: int = 0
    stream: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)
    held: list[ctypes.c_void_p] = field(default_factory=list[ctypes.c_void_p])

    def __enter__(self) -> Self:
        check("aclInit", self.library.aclInit(None))
        check("aclrtSetDevice", self.library.aclrtSetDevice(self.device))
        check("aclrtCreateStream", self.library.aclrtCreateStream(ctypes.byref(self.stream)))
        return self

    def __exit__(self, *failure: object) -> None:
        for pointer in self.held:
            self.library.aclrtFree(pointer)
        self.library.aclrtDestroyStream(self.stream)
        self.library.aclrtResetDevice(self.device)
        self.library.aclFinalize()

    def allocate(self, size: int) -> ctypes.c_void_p:
        """Memory in whole blocks of 32 bytes, and one more: kernels for cards that copy whole blocks touch it."""
        pointer = ctypes.c_void_p()
        rounded = ctypes.c_size_t(-(-size // 32) * 32 + 32)
        check("aclrtMalloc", self.library.aclrtMalloc(ctypes.byref(pointer), rounded, HUGE_PAGES_FIRST))
        self.held.append(pointer)
        return pointer

    def send(self, pointer: ctypes.c_void_p, array: np.ndarray) -> None:
        """Host to device."""
        size = ctypes.c_size_t(array.nbytes)
        check(
            "aclrtMemcpy",
            self.library.aclrtMemcpy(pointer, size, array.ctypes.data_as(ctypes.c_void_p), size, TO_DEVICE),
        )

    def fetch(self, array: np.ndarray, pointer: ctypes.c_void_p) -> None:
        """Device to host."""
        size = ctypes.c_size_t(array.nbytes)
        check(
            "aclrtMemcpy", self.library.aclrtMemcpy(array.ctypes.data_as(ctypes.c_void_p), size, pointer, size, TO_HOST)
        )

    def function(self, binary: bytes, meta: Mapping[str, Any]) -> ctypes.c_void_p:
        """The handle of a kernel in a binary."""
        option = LoadOption(MAGIC_OPTION, (ctypes.c_uint32 * 4)(MAGICS[meta["magic"]], 0, 0, 0))
        options = LoadOptions(ctypes.pointer(option), 1)
        loaded, function = ctypes.c_void_p(), ctypes.c_void_p()
        size = ctypes.c_size_t(len(binary))
        load = self.library.aclrtBinaryLoadFromData
        check("aclrtBinaryLoadFromData", load(binary, size, ctypes.byref(options), ctypes.byref(loaded)))
        name = meta["kernelName"].encode()
        check("aclrtBinaryGetFunction", self.library.aclrtBinaryGetFunction(loaded, name, ctypes.byref(function)))
        return function

    def run(self, function: ctypes.c_void_p, blocks: int, arguments: Sequence[Any]) -> None:
        """One launch of ``function`` on so many ``blocks``, waited for. Every one of ``arguments`` is given by the
        address of its value.
        """
        array = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(one) for one in arguments])
        launch = self.library.aclrtLaunchKernelWithArgsArray
        check("aclrtLaunchKernelWithArgsArray", launch(function, ctypes.c_uint32(blocks), self.stream, None, array))
        check("aclrtSynchronizeStream", self.library.aclrtSynchronizeStream(self.stream))


def run_kernel(card: Card, binary: bytes, meta: Mapping[str, Any], given: Arrays) -> dict[str, np.ndarray]:
    """The outputs of one launch of ``binary`` on a ``card``, and the inputs that the kernel updates, by name.

    ``meta`` is the kernel's kernel_meta, ``given`` its inputs by name. Raises LaunchError where the data does not fit.
    """
    sizes = symbols_of(meta, given)
    found: dict[str, np.ndarray] = {}
    pointers: list[ctypes.c_void_p] = []
    for argument in meta["arguments"]:
        room = value_of(argument["bytes"], sizes)
        if meta["tiling"]["fields"] and room >= 1 << 31:
            raise LaunchError(f"{argument['name']} has {room} bytes; kernels for open sizes count them in 32 bits")
        pointer = card.allocate(room)
        pointers.append(pointer)
        if argument["role"] != "workspace":
            array = host_array(argument, given, sizes)
            card.send(pointer, array)
            found[argument["name"]] = array
    fields = meta["tiling"]["fields"]
    tiling = [(ctypes.c_int32 * len(fields))(*[sizes[name] for name in fields])] if fields else []
    card.run(card.function(binary, meta), meta["blockDim"], [*pointers, *tiling])
    written = {
        a["name"]: p for a, p in zip(meta["arguments"], pointers, strict=True) if a["role"] in ("output", "updated")
    }
    for name, pointer in written.items():
        card.fetch(found[name], pointer)
    return {name: found[name] for name in written}


def host_array(argument: Mapping[str, Any], given: Arrays, sizes: Mapping[str, int]) -> np.ndarray:
    """A contiguous copy of an input; an output of 0x55 in every byte, so that what is not written shows.

    Raises LaunchError for an input that is missing or of another type or shape.
    """
    name, dtype = argument["name"], numpy_type(argument["dtype"])
    shape = tuple(value_of(dim, sizes) for dim in argument["shape"])
    if argument["role"] == "output":
        array = np.empty(shape, dtype)
        array.view(np.uint8).fill(0x55) if shape else array.reshape(1).view(np.uint8).fill(0x55)
        return array
    if name not in given:
        raise LaunchError(f"the data lacks {name}")
    if given[name].shape != shape or given[name].dtype.itemsize != dtype.itemsize:
        raise LaunchError(f"{name} is {given[name].dtype}{given[name].shape}, expected {dtype}{shape}")
    return np.array(given[name], order="C").view(dtype)


def numpy_type(name: str) -> np.dtype[Any]:
    """numpy's type of a name; bfloat16 is moved as its bits."""
    return np.dtype("uint16" if name == "bfloat16" else name)


def symbols_of(meta: Mapping[str, Any], given: Arrays) -> dict[str, int]:
    """The fields of the tiling struct: extents of the inputs, read where a dim is one symbol alone.

    Raises LaunchError for a symbol that no dim is.
    """
    sizes: dict[str, int] = {}
    for argument in meta["arguments"]:
        if argument["name"] in given:
            for dim, extent in zip(argument["shape"], given[argument["name"]].shape, strict=True):
                if isinstance(dim, str) and dim.isidentifier():
                    sizes[dim] = extent
    missing = [name for name in meta["tiling"]["fields"] if name not in sizes]
    if missing:
        raise LaunchError(f"no input has a dim that is {', '.join(missing)} alone")
    return sizes


def value_of(dim: int | str, sizes: Mapping[str, int]) -> int:
    """A number, or a sum of products of numbers and symbols: ``2*N*S - 3``."""
    if isinstance(dim, int):
        return dim
    total = 0
    for sign, term in re.findall(r"([+-]?)\s*([\w*]+)", dim):
        product = -1 if sign == "-" else 1
        for factor in term.split("*"):
            product *= int(factor) if factor.isdigit() else sizes[factor]
        total += product
    return total


# ---------------------------------------------------------------- files


def read_meta(path: Path) -> dict[str, Any]:
    """The kernel_meta document."""
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, content: bytes) -> None:
    """Writes a whole file or none."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def differences(meta: Mapping[str, Any], found: Arrays, given: Arrays) -> list[tuple[str, float, bool]]:
    """(output, largest difference, whether it is within the tolerance) for all that something is expected of."""
    rows: list[tuple[str, float, bool]] = []
    for argument in meta["arguments"]:
        name, dtype = argument["name"], argument["dtype"]
        expected = given.get(f"expected_{name}")
        if expected is not None and name in found:
            got, want = (as_numbers(array, dtype) for array in (found[name], expected))
            tolerance = TOLERANCES.get(dtype, 0.0)
            with np.errstate(invalid="ignore"):  # equal infinities
                difference = float(np.nanmax(np.abs(got - want), initial=0.0))
            rows.append((name, difference, bool(np.allclose(got, want, tolerance, tolerance, equal_nan=True))))
    return rows


def as_numbers(array: np.ndarray, dtype: str) -> np.ndarray:
    """Values to compare; bfloat16 is the upper half of a float32."""
    if dtype == "bfloat16":
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.asarray(array, np.float64)


def main(arguments: Sequence[str] | None = None, load: Any = ctypes.CDLL) -> int:
    """Runs the kernels that are named; ``load`` opens a shared library by name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("meta", nargs="+", type=Path, help="NAME.json files")
    parser.add_argument("--data", type=Path, help="an .npz in place of NAME.npz")
    parser.add_argument("--device", type=int, default=0)
    options = parser.parse_args(arguments)
    good = True
    with Card(load(RUNTIME), options.device) as card:
        for path in options.meta:
            meta = read_meta(path)
            with np.load(options.data or path.with_suffix(".npz"), allow_pickle=False) as data:
                given = {name: data[name] for name in data.files}
            found = run_kernel(card, binary_of(path, load(COMPILER)), meta, given)
            rows = differences(meta, found, given)
            good = good and all(right for _, _, right in rows)
            for name, difference, right in rows:
                print(
                    f"{meta['kernelName']} {name}: largest difference {difference:.3g}, {'fine' if right else 'WRONG'}"
                )
            if not rows:
                print(f"{meta['kernelName']}: ran, nothing is expected of it")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
