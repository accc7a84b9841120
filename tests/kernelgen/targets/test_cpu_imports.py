"""Machine code calls what the C library has, and no function of a compiler's own run-time library.

LLVM makes such calls of conversions that the processor lacks (a double to half at once, 128 bits to a float), also of code
that holds none: its rewriting looks behind a conversion for a sign or for the value that was converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from kernelgen.native.elf import linked
from kernelgen.nest.nodes import Call, Expr, Load, Nest, Store
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.math.mathlib import LIBRARY
from kernelgen.targets.cpu.runtime.entry import ENTRY
from kernelgen.targets.cpu.runtime.llvm import compile_object, detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import DTYPES, FLOAT16, Category, DType
from tests.support.hosts import HOSTS, needs_avx2
from tests.support.nests import I, block, buffer, call, loop, output

pytestmark = needs_avx2

C_LIBRARY = LIBRARY | {"memcpy", "memmove", "memset"}
REAL = tuple(dtype for dtype in DTYPES if dtype.category is not Category.COMPLEX)
FLOATS = tuple(dtype for dtype in REAL if dtype.is_float)
OF_FLOATS = tuple(
    name
    for name, scalar in SCALARS.items()
    if scalar.result is Result.SAME
    and scalar.arity in (1, 2)
    and not name.startswith(("logical", "bit", "byte", "half"))
)
FORMS = {"scalar": 1, "vector and tail": 45}
"""Extents of the loop."""
PROCESSORS = {"this processor": detect_host(), "avx2": HOSTS["avx2"]}


@pytest.fixture(params=PROCESSORS)
def host(request: pytest.FixtureRequest) -> Host:
    return PROCESSORS[request.param]


def nest_of(source: DType, values: Sequence[Expr], extent: int) -> Nest:
    """A loop that computes every value of ``x[i]``."""
    outputs = [output(f"y{number}", extent, dtype=value.dtype) for number, value in enumerate(values)]
    stores = (Store(place, (I,), value) for place, value in zip(outputs, values, strict=True))
    return Nest("values", (), (buffer("x", extent, dtype=source), *outputs), block(loop(I, extent, *stores)))


def strangers(source: DType, values: Sequence[Expr], extent: int, host: Host) -> set[str]:
    """What the machine code calls and the C library lacks."""
    image = compile_object(emit_for(nest_of(source, values, extent), host), host)
    return {name for _, name in linked(image, (ENTRY,)).imports} - C_LIBRARY


def argument(source: DType, extent: int) -> Expr:
    return Load(buffer("x", extent, dtype=source), (I,))


@pytest.mark.parametrize("extent", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("source", REAL, ids=str)
def test_chains_of_conversions(host: Host, source: DType, extent: int) -> None:
    x = argument(source, extent)
    chains = [Call("cast", (Call("cast", (x,), through),), target) for through, target in product(REAL, REAL)]
    assert not strangers(source, chains, extent, host)


def applied(name: str, *arguments: Expr) -> Expr:
    """A scalar function of as many of the arguments as it has."""
    return call(name, *arguments[: SCALARS[name].arity])


@pytest.mark.parametrize("extent", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("inner", OF_FLOATS)
def test_functions_of_functions_of_halves(inner: str, extent: int) -> None:
    x = argument(FLOAT16, extent)
    values = [applied(outer, applied(inner, x, x), x) for outer in OF_FLOATS]
    assert not strangers(FLOAT16, values, extent, detect_host())


@pytest.mark.parametrize("extent", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("source", REAL, ids=str)
def test_functions_of_converted_numbers(source: DType, extent: int) -> None:
    x = argument(source, extent)
    wanted = [(name, through) for name, through in product(OF_FLOATS, FLOATS) if through != source]
    narrow = [(Call("cast", (x,), through), name) for name, through in wanted]
    values = [Call("cast", (applied(name, y, y),), FLOAT16) for y, name in narrow]
    assert not strangers(source, values, extent, detect_host())
