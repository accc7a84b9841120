"""The stages of MindSpore, and its passes for which there is nothing to do here: their places and the reasons.

They keep their numbers, so that ``--disable_pass=3.5`` and a list of passes mean the same here and there. What they repair
there cannot be said in our graph: it has no tuples, no monads that order effects, no second spelling of an attribute, and
no state outside of the graph value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphkernel.conditions import PACKETS, RECOMPUTES, Condition, always, dvm, flag, level, not_dvm, on, without

STAGES = (
    "preprocess", "cluster", "highlevelopt1", "split", "highlevelopt2", "combine", "build", "postprocess", "kernelpacket"
)  # fmt: skip
"""The numbered stages."""

FIRST_OF_OURS = 20
"""The number in its stage of the first pass that MindSpore does not have."""

NO_TUPLES = "a node has several outputs by itself: there is no MakeTuple and no TupleGetItem to take apart"
NO_MONADS = "what is written in place is an alias of the graph, not an UpdateState edge that must be moved or merged"
NO_DEPENDS = "order follows from operands and aliases alone: there are no Depend edges"
ONE_SPELLING = "axes, shapes and permutations are attributes everywhere, for the user and inside kernels"

REASONS: Mapping[str, str] = {
    "getitem_tuple": NO_TUPLES,
    "convert_input_to_attr": ONE_SPELLING,
    "convert_attr_to_input": ONE_SPELLING,
    "depend_elimination": NO_DEPENDS,
    "depend_edge_elimination": NO_DEPENDS,
    "generated_depend_elimination": NO_DEPENDS,
    "split_assign": "an Assign is a value here; the alias of its result says where it lands, and no order hangs on it",
    "spread_update_state": NO_MONADS,
    "extend_output_for_update_state": NO_MONADS,
    "merge_output_for_update_state": NO_MONADS,
    "fold_updatestates": NO_MONADS,
    "shrink_update_state": NO_MONADS,
    "save_output_shape": "passes keep the types of the outputs, and a check after each says so",
    "rewrite_output_shape": "passes keep the types of the outputs: nothing was lost",
    "convert_mix_type": "a type rule gives each operator one data type: operands of mixed types never come this far",
    "symbol_engine_builder": "every extent is a number or a polynomial of symbols already",
    "symbol_engine_extender": "shapes of packets are computed by the plan, from symbols",
    "reduce_fake_output_memory": "an output that only exists because of an alias is stored in the operand's memory",
    "graph_kernel_cluster_for_dynshape": ("graph_kernel_cluster takes symbolic extents: there is no second clustering"),
    "dyn_graph_kernel_splitter": "graph_kernel_splitter takes symbolic extents: there is no second splitting",
    "graph_kernel_build": (
        "kernels are compiled by the driver, after the graph is done; optimizing alone compiles none"
    ),
    "set_infershape_funtor": "a kernel's output shapes are polynomials of its input shapes",
    "bind_value_to_graph": "constants are nodes of the graph that uses them",
    "deal_with_side_effect": "aliases are carried along by every pass",
    "add_attr": "a kernel's node tells its target and name without further attributes",
    "convert_call_to_prim": "a kernel is a node with a body from the start, not a call",
}
"""Pass of MindSpore -> why there is nothing to do here."""


@dataclass(frozen=True)
class IdleStep:
    """Where MindSpore runs a pass of :data:`REASONS`: its number in the stage, from which level on, and when.

    It stands before the next larger number of MindSpore, or before the pass of ours with the number ``before``.
    """

    name: str
    stage: str
    number: int
    level: int = 1
    when: Condition = always
    before: int | None = None


_DYNAMIC = flag("enable_dynamic_shape_fusion")
_PARALLEL = flag("enable_parallel_fusion")
_REWRITTEN = level(2) | RECOMPUTES
_NAMED_KERNELS = 21

IDLE_STEPS = (
    IdleStep("getitem_tuple", "preprocess", 0),
    IdleStep("convert_input_to_attr", "preprocess", 1),
    IdleStep("depend_elimination", "preprocess", 2),
    IdleStep("save_output_shape", "preprocess", 4, when=on("gpu")),
    IdleStep("split_assign", "preprocess", 5, when=on("gpu", "cpu") | dvm),
    IdleStep("spread_update_state", "preprocess", 6),
    IdleStep("convert_mix_type", "cluster", 5),
    IdleStep("extend_output_for_update_state", "split", 0),
    IdleStep("symbol_engine_builder", "split", 2, when=dvm),
    IdleStep("getitem_tuple", "split", 5),
    IdleStep("merge_output_for_update_state", "split", 6),
    IdleStep("depend_edge_elimination", "split", 8, when=dvm),
    IdleStep("extend_output_for_update_state", "highlevelopt2", 6, when=_REWRITTEN),
    IdleStep("merge_output_for_update_state", "highlevelopt2", 7, when=_REWRITTEN),
    IdleStep("fold_updatestates", "combine", 0, when=on("gpu", "ascend") & _PARALLEL),
    IdleStep("spread_update_state", "combine", 1, when=_PARALLEL),
    IdleStep("extend_output_for_update_state", "build", 0, when=not_dvm, before=_NAMED_KERNELS),
    IdleStep(
        "reduce_fake_output_memory", "build", 1,
        when=not_dvm & without("enable_dynamic_shape_fusion"), before=_NAMED_KERNELS,
    ),
    IdleStep("graph_kernel_cluster_for_dynshape", "build", 2, when=on("cpu", "gpu") & _DYNAMIC, before=_NAMED_KERNELS),
    IdleStep("symbol_engine_builder", "build", 3, when=on("cpu", "gpu") & _DYNAMIC, before=_NAMED_KERNELS),
    IdleStep("dyn_graph_kernel_splitter", "build", 4, when=on("gpu") & _DYNAMIC, before=_NAMED_KERNELS),
    IdleStep("graph_kernel_build", "build", 5, when=not_dvm),
    IdleStep("generated_depend_elimination", "build", 6, level=2, when=on("gpu") | (on("ascend") & not_dvm)),
    IdleStep("getitem_tuple", "build", 7, when=not_dvm),
    IdleStep("merge_output_for_update_state", "build", 8, when=not_dvm),
    IdleStep("shrink_update_state", "postprocess", 0),
    IdleStep("getitem_tuple", "postprocess", 1),
    IdleStep("rewrite_output_shape", "postprocess", 2, when=on("gpu")),
    IdleStep("set_infershape_funtor", "postprocess", 3, when=not_dvm & _DYNAMIC),
    IdleStep("convert_attr_to_input", "postprocess", 4),
    IdleStep("bind_value_to_graph", "postprocess", 5),
    IdleStep("deal_with_side_effect", "postprocess", 6, when=dvm | on("gpu")),
    IdleStep("add_attr", "postprocess", 7),
    IdleStep("convert_call_to_prim", "postprocess", 8, when=dvm),
    IdleStep("symbol_engine_extender", "kernelpacket", 0, level=0, when=PACKETS),
    IdleStep("convert_call_to_prim", "kernelpacket", 1, level=0, when=PACKETS),
)  # fmt: skip
"""In the order of the pipeline."""
