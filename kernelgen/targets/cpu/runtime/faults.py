"""What a process says when machine code touches memory that it must not: the address goes into a file, the process ends.

The handler is machine code too. It runs on whichever thread faults, and calls what is allowed in a signal handler alone.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from functools import cache

from kernelgen.errors import BackendUnavailable
from kernelgen.native.library import Library
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.runtime.objects import cached_library

STATUS = 117
"""The exit status of a process that has reported a fault."""

ADDRESS_BYTES = 8
"""What is written at the start of the file: the address in the machine's byte order; 0 where the processor names none,
which is how x86 answers an access that is not aligned."""

_ADDRESS_OFFSET = 16  # of si_addr in siginfo_t, on Linux with 64-bit pointers
_SIGINFO = 4

_TEXT = f"""\
@file = internal global i32 -1

define void @watch(i32 %descriptor) {{
  store i32 %descriptor, ptr @file
  ret void
}}

define void @report(i32 %signal, ptr %info, ptr %context) {{
  %address = getelementptr i8, ptr %info, i64 {_ADDRESS_OFFSET}
  %descriptor = load i32, ptr @file
  %written = call i64 @pwrite(i32 %descriptor, ptr %address, i64 {ADDRESS_BYTES}, i64 0)
  call void @_exit(i32 {STATUS})
  ret void
}}

declare i64 @pwrite(i32, ptr, i64, i64)
declare void @_exit(i32)
"""


class _Action(ctypes.Structure):
    """``struct sigaction`` of Linux's C libraries on 64-bit machines."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def report_faults(descriptor: int) -> None:
    """From now on a fault of this process ends it with :data:`STATUS`; the address is written to the file's start.

    It stays so: the handler is kept as long as the process. Raises BackendUnavailable where signals are handled in another way.
    """
    if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != ADDRESS_BYTES:
        raise BackendUnavailable("faults are reported on 64-bit Linux alone")
    library = _handler()
    ctypes.CFUNCTYPE(None, ctypes.c_int)(library.addresses["watch"])(descriptor)
    action = _Action(handler=library.addresses["report"], flags=_SIGINFO)
    libc = ctypes.CDLL(None, use_errno=True)
    for number in (signal.SIGSEGV, signal.SIGBUS):
        if libc.sigaction(number, ctypes.byref(action), None):
            raise BackendUnavailable(f"faults cannot be reported: error {ctypes.get_errno()} of sigaction")


@cache
def _handler() -> Library:
    return cached_library(_TEXT, detect_host(), ("watch", "report"), {})[0]
