"""What machine code needs of a processor, without a compiler: Linux's words for what the processor and the system have."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterable, Mapping
from functools import cache

from kernelgen.system.named_tuples import NamedTuple

_TOLD = 16 << 10  # bytes; the first processor's part is shorter
_IDENTITY = ("vendor_id", "cpu family", "model", "model name", "stepping", "CPU implementer", "CPU part", "CPU variant")
_ALIASES: Mapping[str, str] = {
    "64bit": "lm", "bmi": "bmi1", "crc32": "sse4_2", "lzcnt": "abm", "pclmul": "pclmulqdq", "prfchw": "3dnowprefetch",
    "rdrnd": "rdrand", "sahf": "lahf_lm", "sha": "sha_ni", "sse3": "pni",
}  # fmt: skip
"""LLVM's names of features that Linux calls otherwise; the others differ in signs alone."""


MATRICES = frozenset(("amx_tile", "amx_int8"))
"""Linux's words for the registers of matrices that bytes are multiplied in (AMX)."""

ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 158, 0x1023, 18
"""The call of the system, what is asked, and for which part of the registers, as Linux numbers them on x86-64."""


class Processor(NamedTuple):
    """``flags`` are Linux's words; empty where it does not tell them. ``identity`` tells models of processors apart."""

    architecture: str
    identity: tuple[str, ...]
    flags: frozenset[str]

    def words_for(self, features: Iterable[str]) -> tuple[str, ...]:
        """The flags among LLVM's features, sorted; a feature that Linux does not tell of here is left out."""
        plain = {_plain(flag): flag for flag in self.flags}
        named = (plain.get(_plain(_ALIASES.get(feature, feature))) for feature in features)
        return tuple(sorted({flag for flag in named if flag is not None}))


@cache
def processor() -> Processor:
    """The one that this process runs on, without the registers of matrices where the system does not lend them."""
    here = described(platform.machine(), _told())
    if not MATRICES & here.flags or _may_use_matrices():
        return here
    return Processor(here.architecture, here.identity, here.flags - MATRICES)


def described(architecture: str, told: str) -> Processor:
    """A processor as /proc/cpuinfo tells of it."""
    first = told.partition("\n\n")[0].splitlines()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first)}
    flags = fields.get("flags", fields.get("Features", ""))
    identity = tuple(f"{name}: {fields[name]}" for name in _IDENTITY if name in fields)
    return Processor(architecture, identity, frozenset(flags.split()))


def _may_use_matrices() -> bool:
    """Asks Linux for them: from the first use on a thread's state takes 8 KB more, which not every process has room for."""
    return ctypes.CDLL(None).syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0


def _told() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return file.read(_TOLD)
    except OSError:
        return ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace(".", "").replace("-", "")
