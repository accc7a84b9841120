"""Integers of a function as polynomials over what is not known, in one case of the conditions that decide them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

Monomial = tuple[str, ...]
Polynomial = dict[Monomial, int]
Fixed = tuple[tuple[Monomial, int], ...]

_ARITHMETIC = re.compile(r"(add|sub|mul|and|or|udiv) (?:nsw |nuw |exact )*i64 ([^,]+), (\S+)$")
_ELEMENT = re.compile(r"getelementptr (?:inbounds )?(<(\d+) x (\w+)>|\w+), ptr (\S+), i64 (\S+)$")
_PHI = re.compile(r"phi i64 \[ (\S+), %\S+ \], \[ (%\S+), %\S+ \]$")
_SELECT = re.compile(r"select i1 (\S+), (?:i64|ptr) (\S+), (?:i64|ptr) (\S+)$")
_COMPARE = re.compile(r"icmp (\w+) i64 (\S+), (\S+)$")
_LOGIC = re.compile(r"(and|or) i1 (\S+), (\S+)$")
_ADDRESS = re.compile(r"ptrtoint ptr (\S+) to i64$")
_SLOT = re.compile(r"alloca .*, align (\d+)$")
_ROUNDED = re.compile(r"call ptr @llvm\.ptrmask\.p0\.i64\(ptr \S+, i64 -(\d+)\)$")
_STEP = re.compile(r"add (?:nsw |nuw )*i64 (%\S+), (\d+)$")
_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}
_MOST_STEPS = 200


class Unknown(Exception):
    """A condition that has to be true or false before a value is known."""

    def __init__(self, condition: str) -> None:
        super().__init__(condition)
        self.condition = condition


class Terms:
    """Values by their names. Raises :class:`Unknown` for a condition that ``case`` leaves open."""

    def __init__(self, definitions: Mapping[str, str], pointers: frozenset[str], case: Mapping[str, bool]) -> None:
        self._definitions = definitions
        self._pointers = pointers
        self._case = case
        self._known: dict[str, Polynomial] = {}
        self.lanes: dict[str, tuple[Polynomial, int, int]] = {}
        """Atom -> (A, modulus, size): the atom is ``A mod modulus / size``."""
        self.elements: dict[str, int] = {}
        """Pointer -> bytes of the smallest elements that are addressed from it: arrays are aligned to their elements."""
        self.either: dict[str, tuple[Polynomial, Polynomial]] = {}
        """Atom -> the two integers whose bits it has."""

    def value(self, name: str) -> Polynomial:
        """The polynomial of an integer, or of an address in bytes."""
        found = self._known.get(name)
        if found is None:
            is_number = not name.startswith("%") and name.lstrip("-").isdecimal()
            found = _number(int(name)) if is_number else self._made(name, self._definitions.get(name, ""))
            self._known[name] = found
        return found

    def _made(self, name: str, text: str) -> Polynomial:
        if found := _ARITHMETIC.match(text):
            return self._arithmetic(name, found[1], self.value(found[2]), self.value(found[3]))
        if found := _ELEMENT.match(text):
            return self._element(self.value(found[4]), self.value(found[5]), int(found[2] or 1), found[3] or found[1])
        if found := _ADDRESS.match(text):
            return self.value(found[1])
        if found := _SELECT.match(text):
            return self.value(found[2] if self.holds(found[1]) else found[3])
        if found := _PHI.match(text):
            step = _STEP.match(self._definitions.get(found[2], ""))
            moves = step is not None and step[1] == name
            return plus(self.value(found[1]), {(name,): int(step[2])}) if step and moves else {(name,): 1}
        if found := _SLOT.match(text) or _ROUNDED.match(text):
            return {(name,): int(found[1])}
        return {(name,): 1}

    def _element(self, base: Polynomial, index: Polynomial, lanes: int, kind: str) -> Polynomial:
        size = _BYTES[kind]
        for atom in {atom for term in base for atom in term} & self._pointers:
            self.elements[atom] = min(size, self.elements.get(atom, size))
        return plus(base, times(index, _number(lanes * size)))

    def _arithmetic(self, name: str, op: str, left: Polynomial, right: Polynomial) -> Polynomial:
        constant = right.get((), 0) if right.keys() <= {()} else None
        match op:
            case "add":
                return plus(left, right)
            case "sub":
                return plus(left, right, -1)
            case "mul":
                return times(left, right)
            case "and" if constant is not None and constant < 0 and _is_power(-constant):
                return times(_number(-constant), self._atom("floor", left, -constant)) if left else {}
            case "and" if constant is not None and _is_power(constant + 1):
                atom = self._atom("mod", left, constant + 1)
                self.lanes[next(iter(atom))[0]] = (left, constant + 1, 1)
                return atom
            case "udiv" if constant and (of := self.lanes.get(_only_atom(left))):
                atom = self._atom("lanes", left, constant)
                self.lanes[next(iter(atom))[0]] = (of[0], of[1], of[2] * constant)
                return atom
            case "or":
                atom = self._atom("or", plus(left, right), 0)
                self.either[next(iter(atom))[0]] = (left, right)
                return atom
            case _:
                return {(name,): 1}

    def _atom(self, kind: str, of: Polynomial, number: int) -> Polynomial:
        return {(f"{kind} {fixed(of)} {number}",): 1}

    def counts(self, address: Polynomial, size: int) -> bool:
        """Whether an address lies whole elements of a size behind an array of elements that are no smaller."""
        return all(factor % size == 0 or self._is_array(term, size) for term, factor in address.items())

    def _is_array(self, term: Monomial, size: int) -> bool:
        return len(term) == 1 and self.elements.get(term[0], 0) % size == 0 and term[0] in self.elements

    # ------------------------------------------------------------ conditions

    def holds(self, name: str) -> bool:
        """Whether a condition is true. Raises :class:`Unknown` where that is open."""
        found = self.decided(name)
        if found is None:
            raise Unknown(self._open(name))
        return found

    def decided(self, name: str) -> bool | None:
        """True, false, or None where it is open: by the case, or because both sides of a comparison are one value."""
        if name in ("true", "false"):
            return name == "true"
        text = self._definitions.get(name, "")
        if found := _LOGIC.match(text):
            left, right = self.decided(found[2]), self.decided(found[3])
            winner = found[1] == "or"
            if winner in (left, right):
                return winner
            return self._case.get(name) if None in (left, right) else not winner
        found = self._compared(name)
        return self._case.get(name) if found is None else found

    def _compared(self, name: str) -> bool | None:
        found = _COMPARE.match(self._definitions.get(name, ""))
        if not found:
            return None
        if plus(self.value(found[2]), self.value(found[3]), -1):
            return None
        return found[1] in ("eq", "sle", "sge", "ule", "uge")

    def _open(self, name: str) -> str:
        """The first comparison that decides a condition and is open."""
        found = _LOGIC.match(self._definitions.get(name, ""))
        if not found:
            return name
        return self._open(found[2] if self.decided(found[2]) is None else found[3])

    def zeros(self, name: str, way: bool) -> Iterator[Polynomial]:
        """Integers that are 0 where a condition is so."""
        text = self._definitions.get(name, "")
        if (found := _LOGIC.match(text)) and way is (found[1] == "and"):
            yield from self.zeros(found[2], way)
            yield from self.zeros(found[3], way)
        if (found := _COMPARE.match(text)) and (found[1], way) in (("eq", True), ("ne", False)):
            yield from self._parts(plus(self.value(found[2]), self.value(found[3]), -1))

    def _parts(self, zero: Polynomial) -> Iterator[Polynomial]:
        """Both sides of an ``or`` that is 0 are 0."""
        atom = _only_atom(zero)
        if atom in self.either:
            for part in self.either[atom]:
                yield from self._parts(part)
        else:
            yield zero


def is_multiple(value: Polynomial, size: int, zeros: Sequence[Polynomial], terms: Terms) -> bool:
    """Whether a value is certainly a multiple of a power of two, given integers that are 0."""
    rules: list[tuple[Monomial, Polynomial]] = []
    for zero in zeros:
        found = _reduced(_scaled(zero, size, terms), size, rules, terms)
        if found:
            lead = _lead(found, terms)
            rules.append((lead, _led_by_power(found, lead, size)))
    return not _reduced(value, size, rules, terms)


def _scaled(zero: Polynomial, size: int, terms: Terms) -> Polynomial:
    """A zero, times the bytes of a lane where it counts lanes."""
    sizes = {terms.lanes[atom][2] for term in zero for atom in term if atom in terms.lanes}
    return times(zero, _number(max(sizes, default=1)))


def _reduced(value: Polynomial, size: int, rules: Sequence[tuple[Monomial, Polynomial]], terms: Terms) -> Polynomial:
    """What is left of a value modulo ``size`` when lanes become addresses and zeros are taken away."""
    for _ in range(_MOST_STEPS):
        value = {term: _nearest(factor, size) for term, factor in value.items() if factor % size}
        smaller = next(_steps(value, size, rules, terms), None)
        if smaller is None:
            return value
        value = smaller
    return value


def _steps(
    value: Polynomial, size: int, rules: Sequence[tuple[Monomial, Polynomial]], terms: Terms
) -> Iterator[Polynomial]:
    for term, factor in value.items():
        for atom in term:
            of, modulus, lane = terms.lanes.get(atom, ({}, 0, 1))
            if modulus and modulus % size == 0 and factor % lane == 0 and terms.counts(of, lane):
                rest = {_without(term, (atom,)): factor // lane}
                yield plus(plus(value, {term: factor}, -1), times(rest, of))
        for lead, rule in rules:
            if all(term.count(atom) >= lead.count(atom) for atom in lead) and factor % rule[lead] == 0:
                rest = _without(term, lead)
                yield plus(value, times({rest: factor // rule[lead]}, rule), -1)


def _nearest(factor: int, size: int) -> int:
    """The factor modulo a size with the least magnitude: what is taken away once stays -1."""
    return (factor + size // 2) % size - size // 2


def _lead(zero: Polynomial, terms: Terms) -> Monomial:
    """The term that a zero replaces: an address where it has one, else the one with the most factors.

    A number of elements of one byte has the factor 1 as an address has, but is also a factor of other terms, whose places
    would be told by themselves.
    """

    def rank(term: Monomial) -> tuple[bool, bool, int, Monomial]:
        is_alone = zero[term] == 1 and len(term) == 1
        return is_alone and term[0] in terms.elements, is_alone, len(term), term

    return max(zero, key=rank)


def _led_by_power(zero: Polynomial, lead: Monomial, size: int) -> Polynomial:
    """A zero whose leading factor is a power of two: odd factors have inverses modulo ``size``.

    ``40 a = 0 (mod 64)`` becomes ``8 a = 0 (mod 64)``, so that ``16 a`` is seen to be 0 too.
    """
    factor = zero[lead]
    inverse = pow(factor // (factor & -factor), -1, size)
    return {term: _nearest(value * inverse, size) for term, value in zero.items() if value * inverse % size}


def _without(term: Monomial, part: Monomial) -> Monomial:
    left = list(term)
    for atom in part:
        left.remove(atom)
    return tuple(left)


def plus(left: Polynomial, right: Polynomial, factor: int = 1) -> Polynomial:
    """``left + factor * right``."""
    total = dict(left)
    for term, value in right.items():
        total[term] = total.get(term, 0) + factor * value
    return {term: value for term, value in total.items() if value}


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    """``left * right``."""
    total: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            term = tuple(sorted((*a, *b)))
            total[term] = total.get(term, 0) + x * y
    return {term: value for term, value in total.items() if value}


def fixed(value: Polynomial) -> Fixed:
    """A polynomial as a value that compares."""
    return tuple(sorted(value.items()))


def _number(value: int) -> Polynomial:
    return {(): value} if value else {}


def _only_atom(value: Polynomial) -> str:
    """The atom that a value is, "" for other values."""
    (term, factor), *others = (*value.items(), ((), 0))
    return term[0] if len(others) == 1 and len(term) == 1 and factor == 1 else ""


def _is_power(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0
