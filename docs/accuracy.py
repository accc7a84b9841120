"""The page of errors: how far each function of each data type is from the exact one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docs.markdown import RUNS, page, table
from docs.measured import read

KINDS = ("float16", "bfloat16", "float32", "float64")

INTRODUCTION = """The largest error of each function on the CPU, in units in the last place; 0.5 is correctly rounded. The exact
values come from other formulas in float64, for float64 from mpmath with 160 bits. float16 and bfloat16: all 65,536 values (of
functions of two operands, as many pairs); the others: arguments of every exponent and sign, evenly spread ones, NaN,
infinities and zeros. The last column counts results that are NaN, infinite or zero with another sign than the exact one."""

TAILS = """Where a small result is the exponential of a large number, rounding that number costs digits in any program that
calculates in one data type: gelu of -13 is 1e-37 and right to five digits. The error relative to the bound takes this into
account, by so many units for each unit of the result's natural logarithm: {tails}."""

MORE = """What holds beside the table:

- Layer norms, and batch norms in training, give exactly 0 for rows of equal numbers, and around a mean of 10,000 lose no more
  than the rounding of the mean.
- Nothing is flushed to zero: numbers below the normal ones are calculated with.
- `floor_div`, `mod` and `floor_mod` of floats are numpy's, digit by digit. Of integers, division by zero gives 0 (`floor_div`,
  `mod`), and the least integer divided by -1 is itself; nothing traps.
- Sums are in the data type of the operand, in an order that depends on the processor; half types are summed in float32.
- Sums, products, quotients and absolute values of complex64 numbers are right to 3 * 2^-24 of their size; quotients of large
  numbers do not overflow on the way.
- What runs on onnxruntime or another library has that library's errors; `exe.report` says what does.

`python -m tests.accuracy --json benchmarks/results/accuracy.json` measures again, with `--dense` more
arguments; a test holds the bounds on samples."""


def accuracy() -> Mapping[str, str]:
    """The page of the committed run, if there is one."""
    record = read("accuracy.json")
    if record is None:
        return {}
    functions = record["functions"]
    head = ("function", *KINDS, "bound, float32", "bound, float64", "special")
    tails = ", ".join(
        f"{name} {found['float32']['tail']:g}" for name, found in functions.items() if found["float32"]["tail"]
    )
    text = page(
        "How accurate the functions are", INTRODUCTION, table(head, [row(name, found) for name, found in functions.items()]),
        TAILS.format(tails=tails), MORE, note=RUNS,
    )  # fmt: skip
    return {"docs/accuracy.md": text}


def row(name: str, found: Mapping[str, Any]) -> Sequence[str]:
    """The worst errors of a function, with the arguments where they are for the wide types."""
    errors = [
        f"{found[kind]['worst']:.2f}" if found[kind]["worst"] < 10 else f"{found[kind]['worst']:.0f}" for kind in KINDS
    ]
    bounds = [f"{found[kind]['bound']:g}" for kind in ("float32", "float64")]
    return (name, *errors, *bounds, str(sum(found[kind]["special"] for kind in KINDS)))
