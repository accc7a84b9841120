"""What the emitter must know about the processor: a frozen value, so that text can be made for any of them."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.errors import ArgumentError


@dataclass(frozen=True)
class Host:
    """A processor by LLVM's names. ``features`` are the supported ones, without signs.

    ``triple`` is that of another system's machine, whose code is assembled and does not run here; empty for this one's.
    """

    cpu: str
    features: frozenset[str]
    triple: str = ""

    @property
    def vector_bytes(self) -> int:
        """Bytes of the vectors that the emitter writes; 1 means scalar code.

        64 only where wide vectors do not slow the clock: ``avx512vbmi2`` came with the first such processors.
        """
        if self.has_narrow_masks and "avx512vbmi2" in self.features:
            return 64
        if "avx2" in self.features:
            return 32
        if "sse4.1" in self.features or "neon" in self.features:
            return 16
        return 1

    @property
    def vector_floats(self) -> int:
        """float32 numbers of a vector."""
        return max(1, self.vector_bytes // 4)

    @property
    def vector_registers(self) -> int:
        """How many vectors registers hold: the encoding that AVX-512 came with names 32, as ARM's does."""
        return 32 if "avx512vl" in self.features or "neon" in self.features else 16

    @property
    def has_half(self) -> bool:
        """True when float16 conversions are instructions; otherwise they are emitted as integer arithmetic."""
        return "f16c" in self.features or "fullfp16" in self.features

    @property
    def has_fma(self) -> bool:
        """True when multiply and add round once, in one instruction."""
        return "fma" in self.features or "neon" in self.features

    @property
    def has_scaling(self) -> bool:
        """True when multiplying by a power of two that is given as a float is one instruction."""
        return "avx512f" in self.features and "avx512vl" in self.features

    def adds_byte_products(self, lanes: int) -> bool:
        """True when four products of bytes, of which one has a sign, are added to each of so many int32 in one instruction."""
        if "avx512vnni" in self.features and lanes in (4, 8, 16):
            return lanes == 16 or "avx512vl" in self.features
        return "avxvnni" in self.features and lanes in (4, 8)

    @property
    def has_matrices(self) -> bool:
        """True when registers of 16 rows of 64 bytes are, whose products one instruction adds up in 16 x 16 int32."""
        return self.vector_bytes == 64 and {"amx-tile", "amx-int8"} <= self.features

    @property
    def follows_far(self) -> bool:
        """True for Intel's processors of wide vectors, which read words faster that were asked for a page ahead. AMD's have
        ``sse4a``."""
        return self.vector_bytes == 64 and "sse4a" not in self.features

    def adds_pairs(self, lanes: int) -> bool:
        """True when products of pairs of int16 are added up in each of so many int32 in one instruction."""
        needs = {4: "sse2", 8: "avx2", 16: "avx512bw"}
        return needs.get(lanes) in self.features

    def looks_up(self, floats: int) -> bool:
        """True when one instruction takes, for each lane, one of so many floats in a vector."""
        needs = {8: "avx2", 16: "avx512f"}
        return needs.get(floats) in self.features

    @property
    def keeps_tables(self) -> bool:
        """True when the vectors that the emitter writes are those of which one instruction looks up floats."""
        return self.looks_up(self.vector_floats)

    @property
    def has_narrow_masks(self) -> bool:
        """True when masked loads and stores exist for 8- and 16-bit elements."""
        return "avx512bw" in self.features and "avx512vl" in self.features

    @property
    def has_streaming(self) -> bool:
        """True when whole vectors can be stored past the caches, and ``sfence`` orders them."""
        return "avx2" in self.features

    @property
    def has_masks(self) -> bool:
        """True when masked loads and stores exist for 32- and 64-bit elements."""
        return "avx2" in self.features


_V2 = frozenset(("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"))
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
LEVELS = {
    name: Host(name, features)
    for name, features in (
        ("x86-64", frozenset[str]()), ("x86-64-v2", _V2), ("x86-64-v3", _V3), ("x86-64-v4", _V4)
    )
}  # fmt: skip
"""The levels of the x86-64 psABI: what all processors of one have."""


def restricted(level: str, here: Host) -> Host:
    """The processor of a level, as which the one that is ``here`` is used.

    Raises ArgumentError for a name that is no level, and for features that are not here.
    """
    found = LEVELS.get(level)
    if found is None:
        raise ArgumentError(f"GRAPHKERNEL_CPU={level}: one of {', '.join(LEVELS)}")
    if missing := sorted(found.features - here.features):
        raise ArgumentError(f"GRAPHKERNEL_CPU={level}: this processor, {here.cpu}, lacks {', '.join(missing)}")
    return found
