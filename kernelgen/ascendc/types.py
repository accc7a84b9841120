"""The names that AscendC gives to data types, pipes, memories and positions."""

from __future__ import annotations

from kernelgen.tensor.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)

TYPE_NAMES: dict[str, DType] = {
    "half": FLOAT16,
    "float": FLOAT32,
    "bfloat16_t": BFLOAT16,
    "int8_t": INT8,
    "int16_t": INT16,
    "int32_t": INT32,
    "int64_t": INT64,
    "uint8_t": UINT8,
    "uint16_t": UINT16,
    "uint32_t": UINT32,
    "uint64_t": UINT64,
    "bool": BOOL,
}
SPELLINGS: dict[DType, str] = {dtype: name for name, dtype in TYPE_NAMES.items()}
CONVERSIONS: dict[DType, str] = {BFLOAT16: "ToBfloat16"}
"""Functions to types that no static_cast leads to."""

S, V, M, MTE1, MTE2, MTE3, FIX = PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
"""The pipes: scalar, vector, matrix, L1 to L0, GM to core, core to GM, L0C to GM."""

GM, UB, L1, L0A, L0B, L0C = ("GM", "UB", "L1", "L0A", "L0B", "L0C")

POSITIONS: dict[str, str] = {
    "VECIN": UB,
    "VECCALC": UB,
    "VECOUT": UB,
    "A1": L1,
    "B1": L1,
    "C1": L1,
    "A2": L0A,
    "B2": L0B,
    "CO1": L0C,
}
"""Logical position (TPosition) -> memory, as the manual's table of general restrictions has it."""

POSITION_OF: dict[str, str] = {UB: "VECCALC", L1: "A1", L0A: "A2", L0B: "B2", L0C: "CO1"}
"""Memory -> the position that we print."""

EVENTS: frozenset[str] = frozenset(
    {
        "MTE2_MTE1", "MTE1_MTE2", "MTE1_M", "M_MTE1", "MTE2_V", "V_MTE2", "MTE3_V", "V_MTE3", "M_V", "V_M", "MTE3_MTE1",
        "MTE1_MTE3", "MTE1_V", "V_MTE1", "MTE2_M", "M_MTE2", "M_FIX", "FIX_M", "MTE3_MTE2", "MTE2_MTE3", "S_V", "V_S",
        "S_MTE2", "MTE2_S", "S_MTE3", "MTE3_S", "MTE2_FIX", "FIX_MTE2", "FIX_S", "M_S", "FIX_MTE3",
    }
)  # fmt: skip
"""The pairs of pipes (HardEvent, source_target) that flags exist for."""

BLOCK = 32
"""Bytes of a block, the unit of addresses, strides and copies in a core."""
REPEAT = 256
"""Bytes that a vector instruction takes in one repeat: eight blocks."""
FRACTAL = 512
"""Bytes of a fractal, the unit in which L1, L0A, L0B and L0C hold matrices: 16 rows of one block."""
