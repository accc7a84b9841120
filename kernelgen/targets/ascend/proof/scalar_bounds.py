"""What a scalar of a kernel can be, for all values of loop variables, of blocks and of sizes.

    for k in 0..(total + 63) / 64: n = total - k * 64 < 64 ? total - k * 64 : 64         1 <= n <= 64

An expression is a sum of quantities with factors. Each quantity (a loop's variable, a quotient, a choice) has bounds that are
sums of earlier ones; to bound a sum, its latest quantity gives way to its bounds, until a number is left.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd

from kernelgen.ascendc.expressions import (
    Binary,
    Choice,
    Convert,
    Expression,
    Field,
    Intrinsic,
    Name,
    Number,
    Unary,
)

Factor = int | Fraction
"""Whole ones are ints, which cost a tenth."""
Sum = Mapping[int, Factor]
"""Quantity -> its factor; -1 stands for the number 1."""
ONE = -1
Known = dict[tuple[tuple[int, Factor], ...], Factor | None]
"""The most that sums can be, by their quantities and factors."""
MOST_STEPS = 4000
"""Sums that are looked at for one bound."""


@dataclass(frozen=True)
class Quantity:
    """It is none of ``lowers`` exceeds, exceeds none of ``uppers``, and is one of ``cases`` where there are any."""

    lowers: tuple[Sum, ...] = ()
    uppers: tuple[Sum, ...] = ()
    cases: tuple[Sum, ...] = ()


def constant(number: float | Fraction) -> Sum:
    """A number as a sum."""
    return {ONE: _whole(number if isinstance(number, int) else Fraction(number))} if number else {}


def plus(left: Sum, right: Sum, factor: Factor = 1) -> Sum:
    """``left + factor * right``."""
    found = dict(left)
    for quantity, own in right.items():
        total = _whole(found.get(quantity, 0) + factor * own)
        if total:
            found[quantity] = total
        else:
            found.pop(quantity, None)
    return found


def _whole(number: Factor) -> Factor:
    return number if isinstance(number, int) or number.denominator != 1 else number.numerator


@dataclass
class Bounds:
    """What is known where the walk stands. ``cores`` is the most blocks of a launch."""

    cores: int
    quantities: list[Quantity] = field(default_factory=list[Quantity])
    names: dict[str, Sum] = field(default_factory=dict[str, Sum])
    sums: dict[Expression, Sum] = field(default_factory=dict[Expression, Sum])
    known: Known = field(default_factory=dict[tuple[tuple[int, Factor], ...], "Factor | None"])

    def upper(self, expression: Expression) -> Factor | None:
        """No value is above it; None where that is not known."""
        return self.most(self.sum_of(expression))

    def lower(self, expression: Expression) -> Factor | None:
        """No value is below it; None where that is not known."""
        found = self.most(plus({}, self.sum_of(expression), -1))
        return None if found is None else -found

    def bind(self, name: str, value: Expression) -> None:
        """A scalar gets its value."""
        self.names[name] = self.sum_of(value)

    def count(self, name: str, start: Expression, stop: Expression) -> None:
        """A loop's variable counts upwards."""
        last = plus(self.sum_of(stop), constant(1), -1)
        self.names[name] = self._new(Quantity((self.sum_of(start),), (last,)))

    @contextmanager
    def inside(self) -> Generator[None]:
        """What is learnt and bound in here holds in here only."""
        kept = list(self.quantities), dict(self.names), dict(self.sums), dict(self.known)
        yield
        self.quantities, self.names, self.sums, self.known = kept

    def suppose(self, condition: Expression) -> None:
        """A comparison with one quantity of factor 1 on a side holds from here on."""
        match condition:
            case Binary("&&", left, right):
                self.suppose(left)
                self.suppose(right)
            case Binary("<" | "<=" as sign, left, right):
                self._narrow(plus(self.sum_of(right), self.sum_of(left), -1), int(sign == "<"))
            case Binary(">" | ">=" as sign, left, right):
                self._narrow(plus(self.sum_of(left), self.sum_of(right), -1), int(sign == ">"))
            case _:
                pass

    def _narrow(self, room: Sum, least: int) -> None:
        """``room`` is at least ``least``: bounds of its latest quantity."""
        latest = max(room, default=ONE)
        if latest == ONE or abs(room[latest]) != 1:
            return
        own, known = room[latest], self.quantities[latest]
        rest = plus({q: f for q, f in room.items() if q != latest}, constant(least), -1)
        if own > 0:
            known = Quantity((*known.lowers, plus({}, rest, -1)), known.uppers, known.cases)
        else:
            known = Quantity(known.lowers, (*known.uppers, rest), known.cases)
        self.quantities[latest] = known
        self.known.clear()

    def most(self, total: Sum) -> Factor | None:
        """The least number that is shown to be no less than the sum."""
        search = _Search(self.quantities, self.known)
        found = search.most(total)
        if search.steps > MOST_STEPS:
            self.known.clear()  # of what it met after it gave up it knows less than there is to know
        return found

    def sum_of(self, expression: Expression) -> Sum:
        """An expression as a sum; what is none becomes a quantity."""
        if expression not in self.sums:
            self.sums[expression] = self._made(expression)
        return self.sums[expression]

    def _made(self, expression: Expression) -> Sum:
        match expression:
            case Number(value):
                return constant(value)
            case Name(name):
                return self.names[name] if name in self.names else self._new(Quantity())
            case Field() | Intrinsic():
                return self._given(expression)
            case Unary("-", operand):
                return plus({}, self.sum_of(operand), -1)
            case Convert(dtype, operand) if dtype.is_integer:
                return self.sum_of(operand)
            case Binary("+" | "-" as sign, left, right):
                return plus(self.sum_of(left), self.sum_of(right), 1 if sign == "+" else -1)
            case Binary("*", left, right):
                return self._product(self.sum_of(left), self.sum_of(right))
            case Binary("/" | "%" as sign, left, Number(divisor)) if divisor > 0:
                return self._divided(sign, self.sum_of(left), _whole(Fraction(divisor)))
            case Binary("/", left, right):
                return self._split(self.sum_of(left), self.sum_of(right))
            case Choice(condition, then, otherwise):
                return self._chosen(condition, self.sum_of(then), self.sum_of(otherwise))
            case _:
                return self._new(Quantity())

    def _given(self, expression: Field | Intrinsic) -> Sum:
        """What a launch brings along: sizes are 1 at least."""
        if isinstance(expression, Field):
            return self._new(Quantity((constant(1),)))
        least = int(expression.name == "GetBlockNum")
        return self._new(Quantity((constant(least),), (constant(self.cores - 1 + least),)))

    def _product(self, left: Sum, right: Sum) -> Sum:
        for one, other in ((left, right), (right, left)):
            if one.keys() <= {ONE}:
                return plus({}, other, one.get(ONE, 0))
        ends = [(self._least(side), self.most(side)) for side in (left, right)]
        if any(low is None or high is None for low, high in ends):
            (low, _), (other, _) = ends
            if low is None or other is None or low < 0 or other < 0:
                return self._new(Quantity())
            return self._new(Quantity((plus({}, right, low), plus({}, left, other))))
        values = [a * b for a in ends[0] for b in ends[1] if a is not None and b is not None]
        return self._new(Quantity((constant(min(values)),), (constant(max(values)),)))

    def _least(self, total: Sum) -> Factor | None:
        found = self.most(plus({}, total, -1))
        return None if found is None else -found

    def _divided(self, sign: str, value: Sum, divisor: Factor) -> Sum:
        """Towards zero, as in C."""
        low = self._least(value)
        positive, last = low is not None and low >= 0, divisor - 1
        if sign == "%":
            return self._new(Quantity(({} if positive else constant(-last),), (constant(last), *((value,) * positive))))
        exact = plus({}, value, 1 / Fraction(divisor))
        lower = plus(exact, constant(last / Fraction(divisor)), -1)
        upper = exact if positive else plus(exact, constant(last / Fraction(divisor)))
        high = self.most(value)
        whole = () if high is None or high < 0 else (constant(high // divisor),)
        return self._new(Quantity((lower, *((constant((low or 0) // divisor),) * positive)), (upper, *whole)))

    def _split(self, value: Sum, parts: Sum) -> Sum:
        """A division by what is not known."""
        least, divisor = self._least(value), self._least(parts)
        positive = least is not None and least >= 0 and divisor is not None and divisor >= 1
        return self._new(Quantity(({},), (value,)) if positive else Quantity())

    def _chosen(self, condition: Expression, then: Sum, otherwise: Sum) -> Sum:
        """One of two; the smaller or the larger of them where the condition compares just these."""
        both = (then, otherwise)
        if isinstance(condition, Binary) and condition.operator in ("<", "<=", ">", ">="):
            compared = (self.sum_of(condition.left), self.sum_of(condition.right))
            smaller = (compared == both) == (condition.operator in ("<", "<="))
            if compared in (both, both[::-1]):
                return self._new(Quantity(() if smaller else both, both if smaller else (), both))
        return self._new(Quantity(cases=both))

    def _new(self, quantity: Quantity) -> Sum:
        self.quantities.append(quantity)
        return {len(self.quantities) - 1: 1}


@dataclass
class _Search:
    """The best of what bounds make of a sum; ``known`` are the best of sums over the same quantities."""

    quantities: list[Quantity]
    known: Known
    steps: int = 0

    def most(self, total: Sum) -> Factor | None:
        latest = max(total, default=ONE)
        if latest == ONE:
            return total.get(ONE, 0)
        key = tuple(sorted(total.items()))
        if key not in self.known:
            self.steps += 1
            self.known[key] = None if self.steps > MOST_STEPS else self._most(total, latest)
        return self.known[key]

    def _most(self, total: Sum, latest: int) -> Factor | None:
        factor, quantity = total[latest], self.quantities[latest]
        rest = {each: own for each, own in total.items() if each != latest}
        bounds = quantity.uppers if factor > 0 else quantity.lowers
        found = [self.most(plus(rest, bound, factor)) for bound in bounds]
        if quantity.cases:
            each = [self.most(plus(rest, case, factor)) for case in quantity.cases]
            found += [None] if None in each else [max(one for one in each if one is not None)]
        return min((one for one in found if one is not None), default=None)


def common_divisor(expression: Expression, values: Mapping[str, Expression], steps: Mapping[str, int]) -> int:
    """A number that every value of the expression is a multiple of, 0 where it is always 0.

    ``values`` are those of bindings; ``steps`` the divisors of loop variables.
    """
    match expression:
        case Number(value) if isinstance(value, int):
            return abs(value)
        case Name(name):
            return common_divisor(values[name], values, steps) if name in values else steps.get(name, 1)
        case Binary("+" | "-", left, right):
            return gcd(common_divisor(left, values, steps), common_divisor(right, values, steps))
        case Binary("*", left, right):
            return common_divisor(left, values, steps) * common_divisor(right, values, steps)
        case Binary("%", left, right):
            return gcd(common_divisor(left, values, steps), common_divisor(right, values, steps))
        case Unary("-", operand) | Convert(_, operand):
            return common_divisor(operand, values, steps)
        case Choice(_, then, otherwise):
            return gcd(common_divisor(then, values, steps), common_divisor(otherwise, values, steps))
        case _:
            return 1
