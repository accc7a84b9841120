"""What both command lines do alike: whatever goes wrong is one line on stderr and an exit code, and never a traceback."""

from __future__ import annotations

import logging
import sys
from typing import NoReturn

import typer

from kernelgen.system.escape import line, lines
from kernelgen.system.faults import fault_line

FINE, DIFFERS, WRONG_USE, FAULT, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_CODES = (
    "Exit codes: 0 fine; 1 results differ, or something is damaged; 2 it cannot be done: wrong use, a file that cannot "
    "be read, a package that is missing; 3 a fault of this program (GRAPHKERNEL_LOG=debug shows where); 130 interrupted."
)

Errors = tuple[type[BaseException], ...]


def run(app: typer.Typer, known: Errors) -> NoReturn:
    """Runs a command and ends the process. ``known`` are the errors whose text says enough. Raises SystemExit."""
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:  # the last line of defence: what nobody foresaw is a line as well
        logging.getLogger("kernelgen" if app.info.name == "kernelgen" else "graphkernel").debug("", exc_info=error)
        code = _told(*explained(error, known))
    if code == INTERRUPTED:
        _told("interrupted", code)
    raise SystemExit(code or FINE)


def explained(error: Exception, known: Errors) -> tuple[str, int]:
    """An error in one line, and the exit code of its kind."""
    message = getattr(error, "format_message", None)  # typer's errors of use, wherever it keeps their class
    if message is not None:
        context = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError":
            return message(), WRONG_USE
        said = message().rstrip(".")
        if context:
            said += f"{'' if said.endswith('?') else ';'} `{context.command_path} --help` tells more"
        return f"error: {line(said)}", WRONG_USE
    if isinstance(error, known):
        return f"error: {error}", WRONG_USE
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"error: the package {package} is not installed: pip install {package}", WRONG_USE
    if isinstance(error, OSError):
        return f"error: {line(str(error))}", WRONG_USE
    if isinstance(error, MemoryError):
        return f"error: there is not enough memory{f': {line(str(error))}' if str(error) else ''}", WRONG_USE
    return f"error: {fault_line(error)}; GRAPHKERNEL_LOG=debug shows the traceback", FAULT


def _told(message: str, code: int) -> int:
    print(lines(message), file=sys.stderr)
    return code
