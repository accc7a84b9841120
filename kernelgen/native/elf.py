"""Relocatable ELF objects for x86-64, linked but for what only the process knows.

What LLVM makes of position-independent code of ours needs little: sections of code, constants and variables, and calls and
addresses relative to the place they stand at. A function of the process may lie further away than such an address reaches:
its address goes into a cell, and calls jump by way of it. Objects come from files, so every number in them is held against
the object before it is used.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from kernelgen.errors import CodegenError
from kernelgen.native.code import CELL, PAGE, Code
from kernelgen.system.cached_property import cached_property
from kernelgen.system.limits import LIMITS

_IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
_RELOCATABLE, _X86_64 = 1, 62
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOLS, _RELOCATIONS = 2, 4
_LOADED, _NO_BITS = (1, 8), 8
_WRITE, _ALLOCATE, _EXECUTE = 1, 2, 4
_RELATIVE = (2, 4)  # R_X86_64_PC32, PLT32
_BY_CELL = (9, 41, 42)  # R_X86_64_GOTPCREL, GOTPCRELX, REX_GOTPCRELX
_JUMP = b"\xff\x25"  # jmp *offset(%rip): to the address in a cell
_STUB_BYTES = 8


class Section(NamedTuple):
    """A row of the table of sections."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_bytes: int

    @property
    def is_loaded(self) -> bool:
        """Whether it is code, constants or variables."""
        return bool(self.flags & _ALLOCATE) and self.kind in _LOADED


class Symbol(NamedTuple):
    """A row of the table of symbols: ``value`` bytes into the section, which is 0 for what is not defined here."""

    name: int
    information: int
    other: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    """What is written ``offset`` bytes into the section."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


def linked(image: bytes, exports: tuple[str, ...]) -> Code:
    """The code of an object, of which these names are wanted.

    Raises CodegenError for an object that is damaged, for another machine, or lacks one of the names.
    """
    try:
        return _Linker(_Object(image)).code(exports)
    except (struct.error, IndexError, ValueError) as error:  # a table beyond the end, a name that is no text
        raise CodegenError(f"a damaged object: {error}") from error


@dataclass(frozen=True)
class _Object:
    """The tables of an object."""

    image: bytes

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        header = _HEADER.unpack_from(self.image)
        first, size, count = header[6], header[11], header[12]
        if not header[0].startswith(_IDENTITY) or header[1:3] != (_RELOCATABLE, _X86_64) or size != _SECTION.size:
            raise ValueError("not a relocatable ELF object for x86-64")
        found = tuple(map(Section._make, _SECTION.iter_unpack(self._part(first, size * count))))
        if sum(section.size for section in found) > LIMITS.object_bytes:
            raise ValueError(f"more than {LIMITS.object_bytes} bytes")
        return found

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        return tuple(map(Symbol._make, _SYMBOL.iter_unpack(self.content(self._symbol_table))))

    @cached_property
    def relocations(self) -> tuple[Relocation, ...]:
        return tuple(
            Relocation(section.info, offset, kind & 0xFFFFFFFF, kind >> 32, addend)
            for section in self.sections
            if section.kind == _RELOCATIONS and self.sections[section.info].is_loaded
            for offset, kind, addend in _RELOCATION.iter_unpack(self.content(section))
        )

    @cached_property
    def _symbol_table(self) -> Section:
        (table,) = (section for section in self.sections if section.kind == _SYMBOLS)
        return table

    @cached_property
    def _names(self) -> bytes:
        return self.content(self.sections[self._symbol_table.link])

    def name(self, symbol: Symbol) -> str:
        return self._names[symbol.name : self._names.index(0, symbol.name)].decode("ascii")

    def content(self, section: Section) -> bytes:
        """The bytes of a section; none of one that begins as zeros."""
        return b"" if section.kind == _NO_BITS else self._part(section.offset, section.size)

    def _part(self, start: int, size: int) -> bytes:
        if start + size > len(self.image):
            raise ValueError("a part beyond the end")
        return self.image[start : start + size]


class _Linker:
    """Gives the sections of an object their places, then writes what relocations ask for."""

    def __init__(self, source: _Object) -> None:
        self.source = source
        self.places: dict[int, int] = {}
        code = _rounded(self._place(_EXECUTE, 0), _STUB_BYTES)
        outside = [number for number, symbol in enumerate(source.symbols) if not symbol.section and number]
        self.stubs = {number: code + _STUB_BYTES * k for k, number in enumerate(outside)}
        self.constants = _rounded(code + _STUB_BYTES * len(outside), PAGE)
        end = _rounded(self._place(0, self.constants), CELL)
        by_cell = {relocation.symbol for relocation in source.relocations if relocation.kind in _BY_CELL}
        self.cells = {number: end + CELL * k for k, number in enumerate(sorted(by_cell.union(outside)))}
        self.variables = _rounded(end + CELL * len(self.cells), PAGE)
        self.memory = bytearray(_rounded(self._place(_WRITE, self.variables), PAGE))

    def code(self, exports: tuple[str, ...]) -> Code:
        for number, place in self.places.items():
            content = self.source.content(self.source.sections[number])
            self.memory[place : place + len(content)] = content
        for number, place in self.stubs.items():
            self.memory[place : place + 2] = _JUMP
            self._write(place + 2, self.cells[number], -4)
        for relocation in self.source.relocations:
            self._apply(relocation)
        cells = {place: self.source.symbols[number] for number, place in self.cells.items()}
        return Code(
            bytes(self.memory), self.constants, self.variables, self._exported(exports),
            tuple((place, self.source.name(symbol)) for place, symbol in cells.items() if not symbol.section),
            tuple((place, self._offset(symbol)) for place, symbol in cells.items() if symbol.section),
        ).checked()  # fmt: skip

    def _exported(self, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
        known = {self.source.name(symbol): symbol for symbol in self.source.symbols if symbol.section}
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(f"it has no {', '.join(missing)}")
        return tuple((name, self._offset(known[name])) for name in names)

    def _place(self, access: int, start: int) -> int:
        """Gives the sections of one kind of access their places from ``start`` on; where they end."""
        for number, section in enumerate(self.source.sections):
            if section.is_loaded and section.flags & (_WRITE | _EXECUTE) == access:
                if section.alignment > PAGE:
                    raise ValueError(f"an alignment of {section.alignment}")
                self.places[number] = _rounded(start, section.alignment or 1)
                start = self.places[number] + section.size
        return start

    def _offset(self, symbol: Symbol) -> int:
        place = self.places.get(symbol.section)
        if place is None or symbol.value > self.source.sections[symbol.section].size:
            raise ValueError("a symbol beyond what is loaded")
        return place + symbol.value

    def _apply(self, relocation: Relocation) -> None:
        number = relocation.symbol
        if relocation.kind in _BY_CELL:
            target = self.cells[number]
        elif relocation.kind in _RELATIVE:
            target = self.stubs[number] if number in self.stubs else self._offset(self.source.symbols[number])
        else:
            raise ValueError(f"relocations of kind {relocation.kind} are not known")
        if relocation.offset + 4 > self.source.sections[relocation.section].size:
            raise ValueError("a relocation beyond its section")
        self._write(self.places[relocation.section] + relocation.offset, target, relocation.addend)

    def _write(self, place: int, target: int, addend: int) -> None:
        struct.pack_into("<i", self.memory, place, target + addend - place)


def _rounded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
