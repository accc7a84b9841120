"""CUDA C text to PTX and cubin through NVRTC: no driver, no toolkit, no host compiler.

The library is that of the package nvidia-cuda-nvrtc, else the system's. Its headers for half types are in
nvidia-cuda-runtime; a kernel that includes none of them does not need that package.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from kernelgen.errors import BackendUnavailable, CodegenError

VERSION = 13
PACKAGE, HEADERS = "nvidia-cuda-nvrtc", "nvidia-cuda-runtime"
INSTALL = f'install it with: pip install "{PACKAGE}=={VERSION}.0.*"'
INSTALL_HEADERS = f'install them with: pip install "{HEADERS}=={VERSION}.0.*"'
OPTIONS = ("-lineinfo", "--ptxas-options=-v", "-fmad=false")
"""Lines in PTX, the resource report, and no products fused into sums behind our back: a fused kernel rounds as its
operators do one by one. Sums of products ask for ``fma`` by name.
"""

SUCCESS = 0

ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
USED = re.compile(r"Used (?P<registers>\d+) registers")
SHARED = re.compile(r"(?P<shared>\d+) bytes smem")
SPILLS = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
MISSING_HEADER = re.compile(r'(?:cannot|could not) open source file "cuda_(fp16|bf16|fp8)\.h"')
ERROR = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error:? (?P<text>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Resources:
    """What one thread (registers, stack, spills) and one block (shared) of a kernel need; bytes, except registers."""

    registers: int = 0
    shared: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0


@dataclass(frozen=True)
class Compiled:
    """The products of one compilation for one architecture; ``resources`` has a row for each kernel of the text."""

    name: str
    arch: str
    ptx: str
    cubin: bytes
    resources: Mapping[str, Resources]
    log: str


def compile_cuda(source: str, name: str, arch: str = "sm_90", options: Sequence[str] = ()) -> Compiled:
    """Compiles CUDA C for ``arch``, with line information, so that PTX names the lines of ``source``.

    Raises CodegenError, whose message has ``name`` and the first line that the compiler rejects, and
    BackendUnavailable without NVRTC, or without the headers of half types where the text includes them.
    """
    library = _library()
    program = ctypes.c_void_p()
    _check(
        library,
        library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), f"/{name}.cu".encode(), 0, None, None),
    )
    try:
        given = [f"-arch={arch}", *OPTIONS, *_include_options(), *options]
        texts = (ctypes.c_char_p * len(given))(*(option.encode() for option in given))
        status = library.nvrtcCompileProgram(program, len(given), texts)
        log = _product(library, program, "ProgramLog").decode(errors="replace").rstrip("\0")
        if status != SUCCESS and MISSING_HEADER.search(log):
            raise BackendUnavailable(f"kernel {name!r} needs CUDA's headers; {INSTALL_HEADERS}")
        if status != SUCCESS:
            raise CodegenError(_complaint(name, arch, source, log), source)
        ptx = _product(library, program, "PTX").decode()
        return Compiled(name, arch, ptx, _product(library, program, "CUBIN", ending=0), resources_of(log), log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def version() -> str:
    """The compiler's version and that of the headers of half types: what the products depend on beside the text.

    Raises BackendUnavailable without NVRTC.
    """
    library, major, minor = _library(), ctypes.c_int(), ctypes.c_int()
    _check(library, library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"nvrtc {major.value}.{minor.value} {_installed(PACKAGE)}, headers {_installed(HEADERS)}"


def resources_of(log: str) -> Mapping[str, Resources]:
    """The resource report of each kernel in the assembler's verbose output."""
    pieces = ENTRY.split(log)[1:]
    return {name: _resources(text) for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def _resources(text: str) -> Resources:
    spills = SPILLS.search(text)
    stack, stores, loads = (int(number) for number in spills.groups()) if spills else (0, 0, 0)
    return Resources(_number(USED, text), _number(SHARED, text), stack, stores, loads)


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0


def _complaint(name: str, arch: str, source: str, log: str) -> str:
    """Kernel, line and the line's text of the first error; the whole log where no line is named."""
    first = ERROR.search(log)
    if first is None:
        return f"kernel {name!r}, {arch}: NVRTC rejects it:\n{log.strip()}"
    lines, number = source.splitlines(), int(first["line"])
    quoted = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"kernel {name!r}, {arch}, line {number}: {first['text']}: {quoted}"


def _product(library: ctypes.CDLL, program: ctypes.c_void_p, what: str, ending: int = 1) -> bytes:
    """A product as bytes; texts end in ``ending`` zero bytes that are not part of them."""
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw[: size.value - ending]


def _check(library: ctypes.CDLL, status: int) -> None:
    if status != SUCCESS:
        raise CodegenError(f"NVRTC fails: {library.nvrtcGetErrorString(status).decode()}")


@cache
def _library() -> ctypes.CDLL:
    """NVRTC, with its builtins in the process first: it cannot find them in a package's folder by itself."""
    for folder in _library_folders():
        try:
            for path in sorted(folder.glob("libnvrtc-builtins.so.*")):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            library = ctypes.CDLL(str(folder / f"libnvrtc.so.{VERSION}"))
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library
    raise BackendUnavailable(f"NVRTC, the run-time compiler of CUDA {VERSION}, is not here; {INSTALL}")


def _library_folders() -> Iterator[Path]:
    yield from (path.parent for path in _files(PACKAGE, f"libnvrtc.so.{VERSION}"))
    yield from (Path(root, "lib64") for root in (f"/usr/local/cuda-{VERSION}", "/usr/local/cuda"))
    yield Path()  # by its bare name, wherever the system's loader looks


def _include_options() -> list[str]:
    return [f"-I{path.parent}" for path in _files(HEADERS, "cuda_fp16.h")]


@cache
def _installed(package: str) -> str:
    """The version of an installed package; ``none`` where it is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


@cache
def _files(package: str, name: str) -> tuple[Path, ...]:
    """The files of that name in an installed package."""
    try:
        files = metadata.distribution(package).files or []
    except metadata.PackageNotFoundError:
        return ()
    return tuple(Path(str(file.locate())) for file in files if file.name == name)
