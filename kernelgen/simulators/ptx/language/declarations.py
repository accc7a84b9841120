"""Declarations of variables and parameters: ``.shared .align 4 .b8 name[32];``."""

from __future__ import annotations

from kernelgen.simulators.ptx.language.cursor import Cursor
from kernelgen.simulators.ptx.language.nodes import Variable
from kernelgen.simulators.ptx.language.types import width_of

SPACES = (".global", ".shared", ".const", ".local", ".param")
LINKING = (".visible", ".extern", ".weak", ".common")
POINTER_NOTES = (".ptr", ".global", ".shared", ".const", ".local")


def read_variable(cursor: Cursor) -> list[Variable]:
    """One declaration, which may name several variables."""
    space = cursor.take().removeprefix(".")
    align, kind = _align_and_type(cursor)
    found = [_declarator(cursor, space, align, kind)]
    while cursor.accept(","):
        found.append(_declarator(cursor, space, align, kind))
    cursor.expect(";")
    return found


def read_parameter(cursor: Cursor) -> Variable:
    """A kernel's parameter: a scalar, or a struct as an array of bytes."""
    cursor.expect(".param")
    align, kind = _align_and_type(cursor)
    return _declarator(cursor, "param", align, kind)


def _align_and_type(cursor: Cursor) -> tuple[int, str]:
    align, kind = 0, ""
    while cursor.text.startswith("."):
        directive = cursor.take()
        if directive == ".align":
            align = cursor.integer() if not kind else align  # after .ptr it is the alignment of what is pointed at
            if kind:
                cursor.integer()
        elif directive not in POINTER_NOTES and directive not in (".managed", ".unified"):
            kind = directive.removeprefix(".")
    return align, kind


def _declarator(cursor: Cursor, space: str, align: int, kind: str) -> Variable:
    """``name[4][8] = {1, 2}``; a missing size means the dynamic shared array."""
    name, width, count = cursor.take(), width_of(kind) // 8, 1
    while cursor.accept("["):
        count *= 0 if cursor.text == "]" else cursor.integer()
        cursor.expect("]")
    data = _initial(cursor, width, count) if cursor.accept("=") else None
    return Variable(space, name, width * count, align or width, data)


def _initial(cursor: Cursor, width: int, count: int) -> bytes:
    numbers = list[int]()
    if cursor.accept("{"):
        while not cursor.accept("}"):
            numbers.append(cursor.constant())
            cursor.accept(",")
    else:
        numbers.append(cursor.constant())
    mask = (1 << 8 * width) - 1
    return b"".join((number & mask).to_bytes(width, "little") for number in numbers).ljust(width * count, b"\0")
