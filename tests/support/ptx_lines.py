"""One PTX instruction on arrays: a kernel of a single line, for comparisons with arithmetic done otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from kernelgen.simulators.ptx import run

REGISTER_TYPES = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}


def evaluate(instruction: str, sources: Sequence[np.ndarray], result: np.dtype | type) -> np.ndarray:
    """Runs ``instruction``, with ``{d}``, ``{a}``, ``{b}``, ``{c}`` as operands, on each element of equally long arrays."""
    count, out = len(sources[0]), np.zeros(len(sources[0]), result)
    arrays = [out, *sources]
    names = ["d", "a", "b", "c", "e"][: len(arrays)]
    widths = {name: array.itemsize for name, array in zip(names, arrays, strict=True)}
    lines = [f".reg .{REGISTER_TYPES[width]} %{name};" for name, width in widths.items()]
    lines += [f".reg .b64 %p{name};" for name in names]
    lines += [".reg .b32 %t;", ".reg .pred %q;", ".reg .b64 %o;", "mov.u32 %t, %tid.x;"]
    for name in names:
        lines += [f"ld.param.u64 %p{name}, [{name}];", f"mul.wide.u32 %o, %t, {widths[name]};"]
        lines.append(f"add.s64 %p{name}, %p{name}, %o;")
        lines += [f"ld.global.b{8 * widths[name]} %{name}, [%p{name}];"] if name != "d" else []
    lines.append(instruction.format(**{name: f"%{name}" for name in names}))
    lines += [f"st.global.b{8 * widths['d']} [%pd], %d;", "ret;"]
    parameters = ", ".join(f".param .u64 {name}" for name in names)
    text = (
        f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k({parameters})\n{{\n"
        + "\n".join(lines)
        + "\n}\n"
    )
    report = run(text, 1, count, arrays)
    assert report.clean, report
    return out


def rounded(value: Fraction, kind: str, mode: str = "rn") -> Fraction | float:
    """An exact number in a format: the definition of IEEE 754, on fractions; overflow gives inf or the largest number."""
    precision, lowest, highest = FORMATS[kind]
    if value == 0:
        return value
    exponent = max(_exponent(abs(value)), lowest) - (precision - 1)
    unit = Fraction(2) ** exponent
    below = value / unit // 1
    rest = value / unit - below
    if mode == "rn":
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1)
    else:
        up = rest > 0 and (mode == "rp" or (mode == "rz" and value < 0))
    result = (below + up) * unit
    largest = (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** highest
    if abs(result) <= largest:
        return result
    toward_zero = mode == "rz" or (mode == "rm" and value > 0) or (mode == "rp" and value < 0)
    return (largest if value > 0 else -largest) if toward_zero else float("inf") * (1 if value > 0 else -1)


def _exponent(size: Fraction) -> int:
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    return exponent if size >= Fraction(2) ** exponent else exponent - 1
