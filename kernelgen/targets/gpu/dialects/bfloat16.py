"""bfloat16 as its 16 bits, for languages without a type for it that every version has."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgen.targets.gpu.dialects.dialect import HalfType
from kernelgen.tensor.dtypes import FLOAT64, UINT16, UINT32, DType

TEXTS = {
    "float_of_bfloat16": "{device} float float_of_bfloat16({ushort} a) {{ return {float_of_bits}; }}",
    "bfloat16_of_float": """\
{device} {ushort} bfloat16_of_float(float a) {{
  {uint} bits = {bits_of_float};
  return a != a ? 0x7fc0 : ({ushort})((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}}""",
    "bfloat16_of_double": """\
{device} {ushort} bfloat16_of_double({double} a) {{
  float near = (float)a;
  {uint} bits = {bits_of_near};
  if (({double})near != a && a == a && !(bits & 1)) bits += (({double})near < a) == !(bits >> 31) ? 1 : -1;
  return a != a ? 0x7fc0 : ({ushort})((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}}""",
}
"""A double first goes to the neighbouring float with an odd last bit: from there one more rounding is the only one."""


def by_bits(types: Mapping[DType, str]) -> HalfType:
    """bfloat16 as a value of the language's unsigned 16-bit integers."""
    bits = f"(({types[UINT16]}){{0}})"
    return HalfType("float_of_bfloat16({0})", "bfloat16_of_float({0})", "bfloat16_of_double({0})", bits)


def helpers(device: str, types: Mapping[DType, str], bits_of_float: str, float_of_bits: str) -> dict[str, str]:
    """The functions in a language whose spellings these are."""
    words = {
        "device": device,
        "ushort": types[UINT16],
        "uint": types[UINT32],
        "double": types[FLOAT64],
        "bits_of_float": bits_of_float.format("a"),
        "bits_of_near": bits_of_float.format("near"),
        "float_of_bits": float_of_bits.format(f"({types[UINT32]})a << 16"),
    }
    return {name: text.format(**words) for name, text in TEXTS.items()}
