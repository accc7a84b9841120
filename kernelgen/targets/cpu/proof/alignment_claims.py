"""Every alignment above an element's own that a text claims, proved from the text itself, or the text is rejected.

The printer decides by its own rules where a store may claim to be aligned; this check knows nothing of them. It reads the
LLVM assembly, follows addresses back to arguments and stack slots as polynomials, and shows for each way through the
function that the address is a multiple of what is claimed. What it may take for granted: arrays are aligned to their
elements, which the entry checks, and a stack slot lies where its ``alloca`` says.

    %bits = and i64 %address, 63           lanes(A) = A mod 64 / 4: four of it make A, modulo 64
    %skipped = udiv i64 %bits, 4           where %skipped is 0, A is a multiple of 64
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgen.errors import ProofError
from kernelgen.targets.cpu.proof.integer_terms import Terms, Unknown, is_multiple
from kernelgen.targets.cpu.proof.llvm_reader import Block, Body, Condition, functions, read

MOST_CASES = 256
"""Ways through a function that are looked at for one claim."""

_WIDE = re.compile(r"ptr (?:align |%[^\s,]+, align )(?:16|32|64|128|256|512)\b")
_SILENT = re.compile(r"(?:load|store) <[^\n]*ptr %[^\s,]+$", re.M)
_STREAMED = "!nontemporal"
_ACCESS = re.compile(
    r"(?:= load|^  store) (<(\d+) x (\w+)>|\w+)[^\n]*ptr (%[^\s,]+)(?:, align (\d+))?(, !nontemporal !\d+)?$"
)
_MASKED = re.compile(r"call [^\n]*@llvm\.masked\.[^\n]*ptr align (\d+) (%[^\s,]+)")
_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}


@dataclass(frozen=True)
class Claim:
    """An access in a block whose address is said to be a multiple of so many bytes."""

    line: str
    address: str
    size: int


def check_claims(text: str) -> Mapping[str, int]:
    """Functions with claims, and how many were shown. Raises ProofError with the line that claims too much."""
    if not _may_claim(text):
        return {}
    shown: dict[str, int] = {}
    for name, parameters, body in functions(text):
        if not _may_claim(body):
            continue
        found = read(name, parameters, body)
        claims = [(block, claims) for block in found.blocks.values() if (claims := tuple(claims_of(block)))]
        for block, each in claims:
            _prove(each, block, found)
        if claims:
            shown[name] = sum(len(each) for _, each in claims)
    return shown


def _may_claim(text: str) -> bool:
    """Whether a text may claim more than 8 bytes: in words, or by saying nothing of a vector."""
    return _STREAMED in text or bool(_WIDE.search(text) or _SILENT.search(text))


def claims_of(block: Block) -> Iterator[Claim]:
    """The accesses of a block that claim more than 8 bytes. Raises ProofError for one in a form that is not known."""
    for line in block.lines:
        if not _may_claim(line):
            continue
        if masked := _MASKED.search(line):
            yield Claim(line, masked[2], int(masked[1]))
        elif access := _ACCESS.search(line):
            size = _whole(access[2], access[3] or access[1])
            yield Claim(line, access[4], max(int(access[5] or size), size if access[6] else 1))
        else:
            raise ProofError("alignment", "a claim in a form that is not known", line.strip())


def _whole(lanes: str | None, kind: str) -> int:
    """The bytes of a value, a power of two: what LLVM assumes where nothing is said, and what a streaming store needs."""
    size = int(lanes or 1) * _BYTES.get(kind, 8)
    return 1 << (size - 1).bit_length()


def _prove(claims: Sequence[Claim], block: Block, body: Body) -> None:
    """Case by case: a case is a choice of the conditions that decide the addresses."""
    conditions = tuple(body.conditions(block))
    waiting: list[Mapping[str, bool]] = [{}]
    for _ in range(MOST_CASES):
        if not waiting:
            return
        case = waiting.pop()
        try:
            false = next(_false(claims, conditions, body, case), None)
        except Unknown as undecided:
            waiting += [{**case, undecided.condition: way} for way in (True, False)]
            continue
        if false is not None:
            message = f"@{body.name}: {false.address} is not shown to be a multiple of {false.size} bytes"
            raise ProofError("alignment", message, false.line.strip())
    raise ProofError("alignment", f"@{body.name}: more than {MOST_CASES} cases", block.label)


def _false(
    claims: Sequence[Claim], conditions: Sequence[Condition], body: Body, case: Mapping[str, bool]
) -> Iterator[Claim]:
    """The claims that are not shown in a case; none where the case never reaches the block."""
    terms = Terms(body.definitions, body.pointers, {**dict(conditions), **case})
    assumed = (*conditions, *case.items())
    if any(terms.decided(name) is (not way) for name, way in assumed):
        return
    zeros = [zero for name, way in assumed for zero in terms.zeros(name, way)]
    for claim in claims:
        if not is_multiple(terms.value(claim.address), claim.size, zeros, terms):
            yield claim
