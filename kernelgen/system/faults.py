"""What a fault of ours says, on one line and whole: an exception that nobody foresaw, with the place that it comes from."""

from __future__ import annotations

import traceback
from pathlib import Path

from kernelgen.system.escape import line

PACKAGES = frozenset({"graphkernel", "kernelgen"})


def fault_line(error: BaseException) -> str:
    """Class, message and place on one line, and that it is a fault of this program."""
    said = f"{type(error).__name__}: {line(str(error))}" if str(error) else type(error).__name__
    return f"{said}, {_place(error)}: a fault of this program"


def fault_trace(error: BaseException) -> str:
    """The traceback of an error and of what it was raised from, without a line break at the end."""
    return "".join(traceback.format_exception(error)).rstrip()


def _place(error: BaseException) -> str:
    """The innermost line of a traceback that is in one of our packages, else the innermost."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if PACKAGES & set(Path(frame.filename).parts)]
    if not frames:
        return "nowhere"
    frame = (ours or frames)[-1]
    return f"{'/'.join(Path(frame.filename).parts[-2:])} line {frame.lineno}"
