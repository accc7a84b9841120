"""What the emitter must know about the processor: a frozen value, so that text can be made for any of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """A processor by LLVM's names. ``features`` are the supported ones, without signs."""

    cpu: str
    features: frozenset[str]

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
