"""Why something was, or was not, expanded, rewritten and fused: decisions with reason codes from a closed list.

Passes append to the log that their context holds; ``explain`` and the report read it. A new code is one line in REASONS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphkernel.errors import CatalogueError, nearest

REASONS: Mapping[str, str] = {
    "expanded": "the operator was replaced by basic operators",
    "not-expanded-unlisted": "the operator is not in the expander list of the target; add it with enable_expand_ops",
    "not-expanded-disabled": "disable_expand_ops or enable_expand_ops_only excludes the operator",
    "not-expanded-unknown": "no expander is declared for the operator",
    "not-expanded-declined": "the expander declined these operands or attributes",
    "rule-fired": "an equation rewrote an operator",
    "rule-budget": "the rewriting budget ran out; what is left is correct but may be simplified further",
    "folded": "an operator on constants was computed at compile time",
    "merged-equal": "two equal operators became one",
    "removed-unused": "nobody uses the result of the kernel",
    "fused-cluster": "the operator joined a cluster of connected operators",
    "fused-pattern": "a fusion pattern merged two areas",
    "fused-single": "the operator became a kernel by itself",
    "inlined-basic": "the area is left as ordinary operators because a kernel would not pay",
    "not-fused-unlisted": "the operator is not in the cluster list of the target; add it with enable_cluster_ops",
    "not-fused-disabled": "disable_cluster_ops or enable_cluster_ops_only excludes the operator",
    "not-fused-opaque": "no kernel can compute the operator; the host library runs it",
    "not-fused-dtype": "kernels of the target have no arithmetic for this data type",
    "not-fused-empty": "a tensor without elements needs no kernel",
    "not-fused-cycle": "merging would make a kernel wait for its own result",
    "not-fused-limit": "the kernel would exceed composite_op_limit_size or a depth limit of the target",
    "not-fused-cost": "the cost model expects two kernels to be faster than one",
    "not-fused-space": "the iteration spaces do not agree",
    "not-fused-pattern": "no enabled fusion pattern joins the two areas",
    "not-fused-pattern-disabled": "disable_fusion_pattern or enable_fusion_pattern_only excludes the pattern that fits",
}


@dataclass(frozen=True)
class Decision:
    """What pass ``pass_name`` decided about ``subject`` (a node, area or kernel), towards ``other`` if two are involved.

    ``code`` is a key of REASONS; ``message`` holds the particulars (figures, the rule's name, why it was declined).
    """

    pass_name: str
    code: str
    subject: str
    other: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        if self.code not in REASONS:
            raise CatalogueError(f"{self.code!r} is not a reason code{nearest(self.code, REASONS)}; add it to REASONS")

    def __str__(self) -> str:
        objects = f"{self.subject} -> {self.other}" if self.other else self.subject
        return f"{self.pass_name}: {objects}: {self.code}: {self.message or REASONS[self.code]}"


@dataclass
class DecisionLog:
    """An append-only list of decisions, handed down explicitly to whoever decides."""

    _decisions: list[Decision] = field(default_factory=list["Decision"])

    def add(self, pass_name: str, code: str, subject: str, other: str = "", message: str = "") -> None:
        """Appends one decision; ``CatalogueError`` when the code is not in REASONS."""
        self._decisions.append(Decision(pass_name, code, subject, other, message))

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
