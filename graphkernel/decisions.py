"""Why something was, or was not, expanded, rewritten and fused: decisions with reason codes from a closed list.

Passes append to the log that their context holds; ``explain`` and the report read it. A new code is one line in REASONS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from graphkernel.errors import CatalogueError, nearest
from kernelgen.system.escape import line

REASONS: Mapping[str, str] = {
    "expanded": "the operator was replaced by basic operators",
    "not-expanded-unlisted": "the operator is not in the expander list of the target; add it with enable_expand_ops",
    "not-expanded-disabled": "disable_expand_ops or enable_expand_ops_only excludes the operator",
    "not-expanded-undeclared": "no expander is declared for the operator",
    "not-expanded-declined": "the expander declined these operands or attributes",
    "rule-fired": "an equation rewrote an operator",
    "rule-budget": "the rewriting budget ran out; what is left is correct but may be simplified further",
    "folded": "an operator on constants was computed at compile time",
    "merged-equal": "two equal operators became one",
    "removed-unused": "nobody uses the result of the kernel",
    "recomputed": "a kernel is computed again where its values are read last, so that they need not live until then",
    "not-recomputed": "recomputing would free less memory than the thresholds ask for, or exceed the size limit",
    "reduction-reused": "a reduction over the same elements in another shape is computed once",
    "assigned-value-read": "readers of the value read what was assigned, so that it is stored once",
    "in-place": "a result is written over an operand that nobody reads afterwards",
    "not-in-place": "no operand of the kernel can take a result",
    "atomic-add": "the blocks of a reduction add their sums into a cleared result",
    "not-atomic-add": "the reduction gains nothing from being spread over blocks, or cannot be",
    "combined-products": "products with one shared operand became one",
    "not-combined-products": "one product would not move fewer bytes than several, or their types do not agree",
    "fused-parallel": "independent kernels became one that computes them side by side",
    "not-fused-parallel": "the kernels side by side gain nothing, or exceed a limit",
    "reordered-liveness": "operands are computed in another order, which lowers the peak of live bytes",
    "not-reordered-liveness": "no other order of operands lowers the peak of live bytes, or sizes are not known",
    "precision-raised": "narrow floats are computed in float32 and rounded once",
    "precision-lowered": "enable_low_precision lets float32 values be float16",
    "cast-moved": "an operator that does not care about the data type runs on the narrower one",
    "transforms-reduced": "another format needs fewer transposes or reshapes",
    "absorbed-cast": "the product takes the bias as it was before it was rounded",
    "turned-factor": "the product reads rows of a factor that is turned round first",
    "absorbed-transpose": "the product reads the operand transposed",
    "idiom-recognised": "several operators are one that has a name",
    "cloned": "each user has its own copy of an operator that costs nothing",
    "shape-from-other": "another value has the same shape and exists anyway",
    "padded": "the kernel computes the product in whole tiles",
    "own-product": "the product is a kernel of ours",
    "not-own-product": "a library computes the product faster than a kernel would",
    "behind-product": "what a product sums up is divided once it is summed up",
    "total-inverted": "one division for a row, and products for its elements",
    "by-tiles": "the convolution is computed by products of small tiles, which are fewer multiplications",
    "own-convolution": "the region of images has channels last, and its convolutions are kernels",
    "not-own-convolution": "a library computes the region of images faster than kernels would",
    "own-gather": "rows are gathered by the kernel that reads them, whose indices are looked at before",
    "few-segments": "of a sum by segments only the rows that get something are stored",
    "not-padded": "the product is left to a library",
    "by-rows": "the kernel computes rows of a sum over ranks while others are on their way",
    "fused-cluster": "the operator joined a cluster of connected operators",
    "fused-pattern": "a fusion pattern merged two areas",
    "copied-cheap": "a cheap value is computed in each kernel that needs it, so that it need not be stored",
    "fused-single": "the operator became a kernel by itself",
    "inlined-basic": "the area is left as ordinary operators because a kernel would not pay",
    "fused-named": "a named fusion pass made one operator of several",
    "not-fused-named": "a named fusion pass saw its pattern, but a condition does not hold",
    "expanded-named": "kernels cost no more than the operator that the device has for it, and take neighbours in",
    "kept-named": "the operator that the device has for it costs less than several kernels would",
    "named-kernel": "the operator is one kernel as well, for where the device's own is not at hand",
    "packed": "the arithmetic on shapes that an operator waits for became part of it",
    "not-packed": "an operator waits for arithmetic on shapes that cannot become part of it",
    "not-fused-unlisted": "the operator is not in the cluster list of the target; add it with enable_cluster_ops",
    "not-fused-disabled": "disable_cluster_ops or enable_cluster_ops_only excludes the operator",
    "not-fused-opaque": "no kernel can compute the operator; the host library runs it",
    "not-fused-dtype": "kernels of the target have no arithmetic for this data type",
    "not-fused-empty": "a tensor without elements needs no kernel",
    "not-fused-shape": "kernels of the target do not take this shape or attribute",
    "not-fused-symbol": "a kernel would have no operand that tells it a symbolic extent",
    "not-fused-kept": "an attribute of the operator keeps it out of kernels",
    "not-fused-cycle": "merging would make a kernel wait for its own result",
    "not-fused-limit": "the kernel would exceed composite_op_limit_size or a depth limit of the target",
    "not-fused-cost": "the cost model expects two kernels to be faster than one",
    "not-fused-space": "the iteration spaces do not agree",
    "not-fused-pattern": "no enabled fusion pattern joins the two areas",
    "not-fused-pattern-disabled": "disable_fusion_pattern or enable_fusion_pattern_only excludes the pattern that fits",
}


@dataclass(unsafe_hash=True)  # all is Final: a frozen one takes longer to make, and passes make thousands
class Decision:
    """What pass ``pass_name`` decided about ``subject`` (a node, area or kernel), towards ``other`` if two are involved.

    ``code`` is a key of REASONS; ``message`` holds the particulars (figures, the rule's name, why it was declined).
    """

    pass_name: Final[str]
    code: Final[str]
    subject: Final[str]
    other: Final[str] = ""
    message: Final[str] = ""

    def __post_init__(self) -> None:
        if self.code not in REASONS:
            raise CatalogueError(f"{self.code!r} is not a reason code{nearest(self.code, REASONS)}; add it to REASONS")

    def __str__(self) -> str:
        objects = f"{self.subject} -> {self.other}" if self.other else self.subject
        return line(f"{self.pass_name}: {objects}: {self.code}: {self.message or REASONS[self.code]}")


Told: TypeAlias = Callable[[], Iterable[Decision]]


@dataclass
class DecisionLog:
    """An append-only list of decisions, handed down explicitly to whoever decides.

    Some are put into words only when somebody reads the log: most often nobody does.
    """

    _entries: list[Decision | Told] = field(default_factory=list["Decision | Told"])

    def add(self, pass_name: str, code: str, subject: str, other: str = "", message: str = "") -> None:
        """Appends one decision of the pass ``pass_name`` about the node ``subject`` and, where it is about two,
        ``other``.

        ``code`` is one of REASONS, ``message`` the particulars. Raises ``CatalogueError`` when the code is not in
        REASONS.
        """
        self._entries.append(Decision(pass_name, code, subject, other, message))

    def tell_later(self, told: Told) -> None:
        """Appends decisions that were taken, and that ``told`` puts into words when the log is read."""
        self._entries.append(told)

    @property
    def _decisions(self) -> Sequence[Decision]:
        if any(not isinstance(entry, Decision) for entry in self._entries):
            told = ((entry,) if isinstance(entry, Decision) else entry() for entry in self._entries)
            self._entries[:] = [decision for decisions in told for decision in decisions]
        return cast("list[Decision]", self._entries)

    def with_code(self, prefix: str) -> tuple[Decision, ...]:
        """The decisions whose code starts with ``prefix``, such as ``"not-fused"``."""
        return tuple(decision for decision in self._decisions if decision.code.startswith(prefix))

    def about(self, name: str) -> tuple[Decision, ...]:
        """The decisions in which ``name`` is the subject or the other."""
        return tuple(decision for decision in self._decisions if name in (decision.subject, decision.other))

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._decisions)

    def __len__(self) -> int:
        return len(self._decisions)
