"""What a dialect of C for devices is: a table of what differs between them in the programs that we print.

One file for each: :mod:`cuda`, :mod:`hip`, :mod:`opencl`. A new one is such a file, a line of ``DIALECTS`` in :mod:`target`,
and a row in :mod:`kernelgen.machines.gpu.device` of what its threads can do together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelgen.nest.nodes import Space
from kernelgen.tensor.dtypes import DType


@dataclass(frozen=True)
class HalfType:
    """A 16-bit float: how it becomes a float, is made of a float or of a double with one rounding, and of its bits."""

    widen: str
    narrow: str
    narrow_double: str
    of_bits: str
    functions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Computed without a float between: one rounding of the exact result is what a float, rounded, gives too."""


@dataclass(frozen=True)
class TileInstructions:
    """What products in tiles need: copies that go on by themselves, and matrices of 16-bit numbers in a warp's registers."""

    async_copy: str  # 16 bytes from {source} to shared {target} where {condition}, else zeros
    commit_copies: str
    await_copies: str  # all groups but the last {pending}
    load_fragments: str  # 8 x 8 matrices of 16-bit numbers: {count}, {order}, {outputs}, registers {targets}, {address}
    multiply_fragments: str  # {type}s: four numbers d0..d3, four registers a0..a3, two registers b0 and b1
    orders: Mapping[bool, str]  # of rows in registers; True: transposed
    fragment_types: Mapping[DType, str]


@dataclass(frozen=True)
class Dialect:
    """The spellings of a language. ``{0}``, ``{1}`` stand for operands; ``functions`` are those of floats.

    ``shuffle`` and ``tiles`` are None where the language has no such thing: the passes for its devices ask for none.
    """

    name: str
    kernel: str  # before a kernel's name; {x}, {y} is the size of its blocks, {threads} their product
    device: str  # before a function of our own
    types: Mapping[DType, str]
    halves: Mapping[DType, HalfType]
    headers: Mapping[DType, str]  # lines that a text with this data type starts with
    indices: Mapping[str, str]  # of the nest's thread and block numbers
    constant: str  # a pointer that is only read
    pointer: str  # to what a thread writes and no other thread reads
    common: str  # to what threads of a block pass on to each other
    spaces: Mapping[Space, str]  # before the type that a pointer into this space points at; elsewhere ``elsewhere``
    elsewhere: str
    shared: str  # before an array that a block shares, which is declared where the kernel starts
    aligned: str  # before an array that is accessed 16 bytes at once
    barrier: str
    functions: Mapping[str, str]  # of float; double ones in double_functions
    double_functions: Mapping[str, str]
    float_of_bits: str
    double_of_bits: str  # of a 64-bit integer
    long_suffix: str  # of 64-bit literals
    copy: str  # {bytes} at once from {source} to {target}, pointers; {of} and {to} say into which spaces; {vector}
    copy_out: str  # the same to memory that other blocks see
    vectors: Mapping[int, str]  # bytes -> a type of so many
    dynamic_shared: str = ""  # declares {name}, shared memory whose size the launch gives
    dynamic_parameter: str = ""  # the same as the kernel's last parameter
    prelude: tuple[str, ...] = ()  # lines that every text starts with
    helpers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Functions that spellings name beside those of :mod:`scalars`: name -> text, printed where the name stands."""
    shuffle: str | None = (
        None  # {value} of the lane whose number differs in the bits of {lanes}; {width}, {mask} of all
    )
    tiles: TileInstructions | None = None


UNARY = ("floor", "ceil", "trunc", "sqrt", "exp", "expm1", "log", "log1p", "tanh", "erf", "erfc", "sin", "cos", "tan",
         "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh")  # fmt: skip
BINARY = ("pow", "atan2", "fmod", "copysign")


def mathematics(suffix: str = "") -> dict[str, str]:
    """The spellings of C's library, of functions whose names end in ``suffix``."""
    unary = {name: f"{name}{suffix}({{0}})" for name in UNARY}
    binary = {name: f"{name}{suffix}({{0}}, {{1}})" for name in BINARY}
    others = {"abs": "fabs{s}({{0}})", "round": "rint{s}({{0}})", "fma": "fma{s}({{0}}, {{1}}, {{2}})"}
    return {**unary, **binary, **{name: text.format(s=suffix) for name, text in others.items()}}
