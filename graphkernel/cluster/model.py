"""The split model of each target as data: the order of the patterns and the limits that they and the costs obey.

The order and the figures are MindSpore's (CPU and GPU 20 operators, Ascend 10 and 6), with ours put in: ``reduce_bwd`` and
``reduce_chain`` run before ``reduce_fwd_*``, so that what lies between two reductions over different spaces stays with
the first, whose rows it completes (a layer norm before a pooling). A pattern that is in no table runs last, by name, so
that a third party's needs no entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on areas, in operators, and on costs.

    ``cached_bytes``: what two phases of a kernel can pass to each other without going to memory.
    ``parallel_rows``: how many independent rows a kernel needs before its phases are worth being one parallel loop.
    """

    composite_op_limit_size: int = 200
    reduce_fuse_depth: int = 20
    backward_fuse_depth: int = 20
    transpose_fuse_depth: int = 6
    cached_bytes: int = 256 * 1024
    parallel_rows: int = 4


@dataclass(frozen=True)
class SplitModel:
    """Patterns by name, in the order in which they run, and the limits."""

    patterns: tuple[str, ...]
    limits: Limits


ORDER = (
    "bind_virtual_node",
    "reshape",
    "elemwise_broadcast_fwd_depth",
    "elemwise_broadcast_fwd_width",
    "reduce_bwd",
    "reduce_chain",
    "reduce_fwd_depth",
    "reduce_fwd_width",
    "elemwise_broadcast_bwd_depth",
    "elemwise_broadcast_bwd_width",
    "reduce_sibling",
    "transpose",
    "isolate_reshape",
)

MODELS: Mapping[str, SplitModel] = {
    "cpu": SplitModel(ORDER, Limits()),
    "gpu": SplitModel(ORDER, Limits(parallel_rows=128)),
    "ascend": SplitModel(ORDER, Limits(reduce_fuse_depth=10, backward_fuse_depth=6, parallel_rows=32)),
}
