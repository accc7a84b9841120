"""Sessions of onnxruntime that share one pool of threads and one arena of memory, by its C interface.

From Python a session has threads of its own, or all share a pool whose idle threads spin: with fifty regions the former are
too many, and the latter take the cores from the kernels that run in between. The C interface has a pool that sleeps. The
library's table of functions only ever grows at the end, so their places are known.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from kernelgen.system.named_tuples import NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from graphkernel.runtime.onnxruntime.environment import Environment

VERSION = 20  # of the interface: onnxruntime 1.20 has it, and all after it
CPU_ARENA, DEFAULT_MEMORY = 1, 0
AS_REQUESTED = 1  # how an arena grows: not to the next power of two
NO_OPTIMIZATIONS, ALL_OPTIMIZATIONS = 0, 99
FATAL = 4  # what is logged: errors are raised instead
_P, _S, _I, _Z = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
_FILE_NAME = ctypes.c_wchar_p if os.name == "nt" else ctypes.c_char_p
FUNCTIONS: Mapping[str, tuple[int, tuple[Any, ...]]] = {
    "CreateSessionFromArray": (8, (_P, _S, _Z, _P, _P)),
    "Run": (9, (_P, _P, _P, _P, _Z, _P, _Z, _P)),
    "CreateSessionOptions": (10, (_P,)),
    "DisableMemPattern": (17, (_P,)),
    "SetSessionLogSeverityLevel": (22, (_P, _I)),
    "SetSessionGraphOptimizationLevel": (23, (_P, _I)),
    "SetIntraOpNumThreads": (24, (_P, _I)),
    "CreateTensorWithDataAsOrtValue": (49, (_P, _P, _Z, _P, _Z, _I, _P)),
    "GetTensorMutableData": (51, (_P, _P)),
    "GetTensorElementType": (60, (_P, _P)),
    "GetDimensionsCount": (61, (_P, _P)),
    "GetDimensions": (62, (_P, _P, _Z)),
    "GetTensorTypeAndShape": (65, (_P, _P)),
    "CreateCpuMemoryInfo": (69, (_I, _I, _P)),
    "CreateEnvWithGlobalThreadPools": (119, (_I, _S, _P, _P)),
    "DisablePerSessionThreads": (120, (_P,)),
    "CreateThreadingOptions": (121, (_P,)),
    "AddSessionConfigEntry": (130, (_P, _S, _S)),
    "CreateAndRegisterAllocator": (144, (_P, _P, _P)),
    "SetGlobalIntraOpNumThreads": (147, (_P, _I)),
    "SetGlobalInterOpNumThreads": (148, (_P, _I)),
    "SetGlobalSpinControl": (149, (_P, _I)),
    "CreateArenaCfgV2": (164, (_P, _P, _Z, _P)),
    "AddExternalInitializersFromFilesInMemory": (279, (_P, _P, _P, _P, _Z)),
}
"""Place in the table and operands of what gives a status, which is null when all went well."""
RELEASES = {
    "Status": 93, "Session": 95, "Value": 96, "TensorTypeAndShapeInfo": 99, "SessionOptions": 100,
    "ThreadingOptions": 122, "ArenaCfg": 157,
}  # fmt: skip
RUNNING = (
    "CreateTensorWithDataAsOrtValue", "Run", "Value", "GetTensorTypeAndShape", "GetTensorElementType", "GetDimensionsCount",
    "GetDimensions", "TensorTypeAndShapeInfo", "GetTensorMutableData",
)  # fmt: skip
"""The functions and releases that machine code takes which runs a session."""
LONG = frozenset({"CreateEnvWithGlobalThreadPools", "CreateSessionFromArray", "Run", "Session"})
"""What runs without Python's lock. To take it again beside a thread that computes costs up to 5 ms: no other call lets go."""
GET_ERROR_MESSAGE = 2
ELEMENTS: Mapping[int, tuple[str, int]] = {
    1: ("float32", 4), 2: ("uint8", 1), 3: ("int8", 1), 4: ("uint16", 2), 5: ("int16", 2), 6: ("int32", 4), 7: ("int64", 8),
    9: ("bool", 1), 10: ("float16", 2), 11: ("float64", 8), 12: ("uint32", 4), 13: ("uint64", 8), 14: ("complex64", 8),
    15: ("complex128", 16), 16: ("bfloat16", 2),
}  # fmt: skip
"""Name and bytes of the elements that arrays may have, by ONNX's number."""


class OnnxRuntimeError(Exception):
    """What onnxruntime says of a call that failed."""


class _OnDemand(dict[str, Any]):
    """Function pointers by name, each ``made`` when it is first called: ctypes takes long for one, and few calls need all."""

    def __init__(self, made: Callable[[str], Any]) -> None:
        self._made = made

    def __missing__(self, name: str) -> Any:
        found = self[name] = self._made(name)
        return found


class Api:
    """The functions of a library, each of which raises ``OnnxRuntimeError``."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        library.OrtGetApiBase.restype = _P
        get_api = ctypes.CFUNCTYPE(_P, ctypes.c_uint32)(_P.from_address(library.OrtGetApiBase()).value or 0)
        table = get_api(VERSION)
        if not table:
            raise OSError(f"{path}: its interface is older than {VERSION}")
        self._table = int(table)
        self._release = {what: self._function(place, None, _P, waits=what in LONG) for what, place in RELEASES.items()}
        self._functions = _OnDemand(self._called)
        self.memory = self.made("CreateCpuMemoryInfo", CPU_ARENA, DEFAULT_MEMORY)

    def call(self, name: str, *operands: Any) -> None:
        """Calls a function of :data:`FUNCTIONS`. Raises OnnxRuntimeError with what the library says."""
        status = self._functions[name](*operands)
        if status:
            raise self.said(status)

    def made(self, name: str, *operands: Any) -> ctypes.c_void_p:
        """Calls one that writes a pointer into its last operand."""
        result = _P()
        self.call(name, *operands, ctypes.byref(result))
        return result

    @property
    def addresses(self) -> tuple[int, ...]:
        """Of the functions that create a tensor, run a session and release a tensor; of what describes the memory; of those
        that describe a tensor, tell element, rank and extents of a description, release it, and tell where a tensor lies.
        """
        places = {name: place for name, (place, _) in FUNCTIONS.items()} | RELEASES
        create, run, release, *reading = (self._address(places[name]) for name in RUNNING)
        return create, run, release, self.memory.value or 0, *reading

    def said(self, status: int) -> OnnxRuntimeError:
        """The error that a status stands for, which is no more."""
        message = self._function(GET_ERROR_MESSAGE, _S, _P)(status).decode(errors="replace")
        self.release("Status", status)
        return OnnxRuntimeError(message)

    def release(self, what: str, pointer: Any) -> None:
        """Lets go of an object of the library."""
        self._release[what](pointer)

    def _called(self, name: str) -> Any:  # a function pointer
        place, types = FUNCTIONS[name]
        return self._function(place, _P, *types, waits=name in LONG)

    def _function(self, place: int, result: Any, *operands: Any, waits: bool = False) -> Any:  # a function pointer
        kind = ctypes.CFUNCTYPE if waits else ctypes.PYFUNCTYPE
        return kind(result, *operands)(self._address(place))

    def _address(self, place: int) -> int:
        return _P.from_address(self._table + place * ctypes.sizeof(_P)).value or 0


class Lent(NamedTuple):
    """Memory that a session reads: where it starts, its bytes, and what must live as long."""

    address: int
    size: int
    owner: object


class SharedSession:
    """A session on the pool, or, ``alone``, on the thread that calls. It has the methods of Python's that regions use."""

    def __init__(self, of: Environment, content: bytes, weights: Mapping[str, Lent], level: int, alone: bool) -> None:
        self.api = api = of.api
        self._weights = weights  # read where they lie as long as the session lives
        options = api.made("CreateSessionOptions")
        try:
            api.call("SetSessionLogSeverityLevel", options, FATAL)
            api.call("SetSessionGraphOptimizationLevel", options, level)
            if alone:
                api.call("SetIntraOpNumThreads", options, 1)
            else:
                api.call("DisablePerSessionThreads", options)
            api.call("AddSessionConfigEntry", options, b"session.use_env_allocators", b"1")
            api.call("DisableMemPattern", options)  # which would keep one piece of the common arena for each session
            _lend(api, options, weights)
            self.pointer = api.made("CreateSessionFromArray", of.pointer, content, len(content), options)
        finally:
            api.release("SessionOptions", options)

    def binding(self, inputs: Sequence[str], outputs: Sequence[str]) -> Binding:
        """Where these inputs are and where these outputs go."""
        return Binding(self.api, self, inputs, outputs)

    def __del__(self) -> None:
        if hasattr(self, "pointer"):
            self.api.release("Session", self.pointer)


MOST_SHAPES = 256
"""That a binding knows at a time: a program of open extents may bring others at every call."""


class Binding:
    """Arrays by the places of inputs and outputs, and the call that runs a session on them.

    A call of an interface from Python takes about a microsecond, which small operators do not: one runs all, and what
    stays where it is between two runs is told once.
    """

    def __init__(self, api: Api, session: SharedSession, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._api, self._session = api, session
        self._operands, self._results = (_P * len(inputs))(), (_P * len(outputs))()
        self._layouts: dict[tuple[int, tuple[int, ...]], tuple[int, Any, int]] = {}
        self._told: dict[int, tuple[int, tuple[int, ...], int]] = {}
        names = [(_S * len(each))(*(name.encode() for name in each)) for each in (inputs, outputs)]
        operands = (names[0], self._operands, len(inputs), names[1], len(outputs), self._results)
        self.run = partial(api.call, "Run", session.pointer, None, *operands)

    def bind_input(self, place: int, element: int, shape: tuple[int, ...], address: int) -> None:
        """An input that lies at an address, as the one of the last run may have."""
        if self._told.get(place) == (address, shape, element):
            return
        self._told[place] = address, shape, element
        self._bind(self._operands, place, element, shape, address)

    def bind_output(self, place: int, element: int, shape: tuple[int, ...], address: int) -> None:
        """An output that goes to an address; others onnxruntime allocates."""
        self._bind(self._results, place, element, shape, address)

    def taken(self, place: int) -> Output:
        """An output that the last run allocated: the next one allocates another."""
        found = Output(self._api, _P(self._results[place]))
        self._results[place] = None
        return found

    def _bind(self, where: Any, place: int, element: int, shape: tuple[int, ...], address: int) -> None:
        size, extents, rank = self._layout(element, shape)
        self._let_go(where, place)
        slot = ctypes.byref(where, place * ctypes.sizeof(_P))
        self._api.call("CreateTensorWithDataAsOrtValue", self._api.memory, address, size, extents, rank, element, slot)

    def _layout(self, element: int, shape: tuple[int, ...]) -> tuple[int, Any, int]:
        """Bytes, extents and rank of a tensor."""
        found = self._layouts.get((element, shape))
        if found is None:
            if len(self._layouts) == MOST_SHAPES:
                self._layouts.clear()
            size = ELEMENTS[element][1] * prod(shape)
            found = self._layouts[element, shape] = size, (ctypes.c_int64 * len(shape))(*shape), len(shape)
        return found

    def _let_go(self, where: Any, place: int) -> None:
        held = where[place]
        if held:
            where[place] = None
            self._api.release("Value", held)

    def __del__(self) -> None:
        for where in (self._operands, self._results):
            for place in range(len(where)):
                self._let_go(where, place)


class Output:
    """A result that onnxruntime allocated."""

    def __init__(self, api: Api, pointer: ctypes.c_void_p) -> None:
        self._api, self._pointer = api, pointer

    def numpy(self) -> np.ndarray:
        """A copy."""
        import numpy as np  # the library itself is loaded before

        from kernelgen.tensor.dtypes import dtype

        api, element, rank = self._api, _I(), _Z()
        info = api.made("GetTensorTypeAndShape", self._pointer)
        try:
            api.call("GetTensorElementType", info, ctypes.byref(element))
            api.call("GetDimensionsCount", info, ctypes.byref(rank))
            dims = (ctypes.c_int64 * rank.value)()
            api.call("GetDimensions", info, dims, rank.value)
        finally:
            api.release("TensorTypeAndShapeInfo", info)
        array = np.empty(tuple(dims), dtype(ELEMENTS[element.value][0]).numpy)
        ctypes.memmove(array.ctypes.data, api.made("GetTensorMutableData", self._pointer), array.nbytes)
        return array

    def __del__(self) -> None:
        self._api.release("Value", self._pointer)


def _lend(api: Api, options: ctypes.c_void_p, weights: Mapping[str, Lent]) -> None:
    """Onnxruntime that cannot read weights where they lie takes copies."""
    if not weights:
        return
    count = len(weights)
    names: Any = tuple(weights) if os.name == "nt" else tuple(name.encode() for name in weights)
    addresses, sizes, _ = zip(*weights.values(), strict=True)
    api.call("AddSessionConfigEntry", options, b"session.use_external_initializer_file_buffers_directly", b"1")
    api.call(
        "AddExternalInitializersFromFilesInMemory",
        options, (_FILE_NAME * count)(*names), (_P * count)(*addresses), (_Z * count)(*sizes), count,
    )  # fmt: skip
