"""Values that are computed once: kept like by the standard library's property, and without a lock that outlives a fork."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from kernelgen.system.cached_property import cached_property
from tests.support.forks import in_forked_child


@dataclass(frozen=True)
class Triangle:
    side: int
    computed: list[int] = field(default_factory=list[int])
    entered: threading.Event | None = None
    leave: threading.Event | None = None

    @cached_property
    def area(self) -> int:
        """Half of the square."""
        if self.entered is not None and self.leave is not None:
            self.entered.set()
            self.leave.wait(60)
        self.computed.append(self.side)
        return self.side * self.side // 2


def test_a_value_is_computed_once_for_each_object() -> None:
    small, large = Triangle(4), Triangle(6)
    assert [small.area, large.area, small.area] == [8, 18, 8]
    assert (small.computed, large.computed) == ([4], [6])


def test_the_class_gives_the_property_with_its_description() -> None:
    assert isinstance(Triangle.area, cached_property)
    assert Triangle.area.__doc__ == "Half of the square."


def test_an_error_is_not_kept() -> None:
    class Late:
        ready = False

        @cached_property
        def value(self) -> int:
            if not self.ready:
                raise LookupError
            return 1

    late = Late()
    with pytest.raises(LookupError):
        _ = late.value
    late.ready = True
    assert late.value == 1


def test_a_child_forked_while_another_thread_computes_computes_too() -> None:
    entered, leave = threading.Event(), threading.Event()
    slow = Triangle(8, entered=entered, leave=leave)
    thread = threading.Thread(target=lambda: slow.area)
    thread.start()
    entered.wait(60)
    try:
        assert in_forked_child(lambda: Triangle(4).area == 8, 20) == 0
    finally:
        leave.set()
        thread.join()
