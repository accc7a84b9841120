"""Random programs with nested branches and loops: every thread must get what it gets when it runs alone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.cuda_runs import clean

Random = np.random.Generator
CONDITIONS = ("t & 1", "v % 3 == 0", "r > 40", "t < 11", "(r ^ t) & 2", "k == 2", "v > t")
CHANGES = ("r += v", "r = r * 3 + 1", "r ^= t", "v = v * 5 % 17", "r -= k", "v += r & 3")
LEAVES = ("continue", "break")


@dataclass(frozen=True)
class Statement:
    """``do`` a change, ``leave``, ``if`` a condition, or ``loop`` so many rounds."""

    kind: str
    text: str
    body: tuple[Statement, ...] = ()
    other: tuple[Statement, ...] = ()


Program = tuple[Statement, ...]


def program(random: Random, depth: int, in_loop: bool) -> Program:
    """Two to four statements: changes, branches, loops of a few rounds, and ways out of a loop."""
    body = list[Statement]()
    for _ in range(random.integers(2, 5)):
        kind = random.choice(["change", "if", "loop", "leave"], p=[0.4, 0.3, 0.2, 0.1])
        if kind == "change" or depth == 0:
            body.append(Statement("do", str(random.choice(CHANGES))))
        elif kind == "leave":
            way = str(random.choice(LEAVES)) if in_loop else "return"
            body.append(Statement("if", str(random.choice(CONDITIONS)), (Statement("leave", way),)))
        elif kind == "if":
            inner = program(random, depth - 1, in_loop), program(random, depth - 1, in_loop)
            body.append(Statement("if", str(random.choice(CONDITIONS)), *inner))
        else:
            body.append(Statement("loop", f"(v + t) % {random.integers(2, 6)}", program(random, depth - 1, True)))
    return tuple(body)


def as_cuda(body: Program, level: int = 0) -> str:
    """The statements as C; loop variables are numbered by depth, and ``k`` is that of the innermost loop."""
    lines = list[str]()
    for statement in body:
        first = statement.text
        match statement.kind:
            case "do":
                lines.append(f"{first};")
            case "leave":
                lines.append("goto end;" if first == "return" else f"{first};")
            case "if":
                lines.append(
                    f"if ({first}) {{ {as_cuda(statement.body, level)} }} else {{ {as_cuda(statement.other, level)} }}"
                )
            case _:
                count = f"n{level}"
                lines.append(f"{{ unsigned {count} = {first}; for (unsigned k = 0; k < {count}; ++k) {{")
                lines.append(f"{as_cuda(statement.body, level + 1)} }} }}")
    return "\n".join(lines)


class Left(Exception):
    """A thread leaves a loop or the program."""


def execute(body: Program, names: dict[str, int]) -> None:
    """The statements for one thread, in numbers that wrap at 32 bits."""
    for statement in body:
        kind, first = statement.kind, statement.text
        if kind == "do":
            exec(first, {}, names)
            names.update({name: value & 0xFFFFFFFF for name, value in names.items()})
        elif kind == "leave":
            raise Left(first)
        elif kind == "if":
            execute(statement.body if eval(first, {}, names) else statement.other, names)
        else:
            outer = names["k"]
            for number in range(eval(first, {}, names)):
                names["k"] = number
                try:
                    execute(statement.body, names)
                except Left as left:
                    if str(left) == "return":
                        raise
                    if str(left) == "break":
                        break
            names["k"] = outer


@pytest.mark.parametrize("seed", range(12))
def test_threads_that_go_apart(seed: int) -> None:
    random = np.random.default_rng(seed)
    body = program(random, 3, False)
    source = f"""extern "C" __global__ void k(const unsigned* x, unsigned* y) {{
    unsigned t = threadIdx.x, v = x[t], r = 1, k = 7;
    {as_cuda(body)}
    end: y[t] = r * 1000 + v;
    }}"""
    x = random.integers(0, 30, 96).astype(np.uint32)
    y = np.zeros(96, np.uint32)
    clean(source, 1, 96, [x, y])
    for thread, value in enumerate(x):
        names = {"t": thread, "v": int(value), "r": 1, "k": 7}
        with suppress(Left):
            execute(body, names)
        assert int(y[thread]) == (names["r"] * 1000 + names["v"]) & 0xFFFFFFFF, (seed, thread)
