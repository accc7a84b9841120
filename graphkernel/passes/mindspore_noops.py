"""Passes of MindSpore for which there is nothing to do here, each with the reason in words.

They keep their places and numbers in the pipeline, so that ``--disable_pass=3.5`` and a list of passes mean the same here
and there. What they repair there cannot be said in our graph: it has no tuples, no monads that order effects, no second
spelling of an attribute, and no state outside of the graph value.

Before and after::

    t0: f32[4] = Neg(x)          t0: f32[4] = Neg(x)
"""

from __future__ import annotations

from graphkernel.passes.base import Context, Pass
from kernelgen.tensor.graph import Graph


def _nothing(graph: Graph, context: Context) -> Graph:
    return graph


def absorbed(name: str, reason: str) -> Pass:
    """A pass that leaves every graph as it is, because of ``reason``."""
    return Pass(name, _nothing, reason, absorbed=True)


NO_TUPLES = "a node has several outputs by itself: there is no MakeTuple and no TupleGetItem to take apart"
NO_MONADS = "what is written in place is an alias of the graph, not an UpdateState edge that must be moved or merged"
NO_DEPENDS = "order follows from operands and aliases alone: there are no Depend edges"
ONE_SPELLING = "axes, shapes and permutations are attributes everywhere, for the user and inside kernels"

getitem_tuple = absorbed("getitem_tuple", NO_TUPLES)
convert_input_to_attr = absorbed("convert_input_to_attr", ONE_SPELLING)
convert_attr_to_input = absorbed("convert_attr_to_input", ONE_SPELLING)
depend_elimination = absorbed("depend_elimination", NO_DEPENDS)
depend_edge_elimination = absorbed("depend_edge_elimination", NO_DEPENDS)
generated_depend_elimination = absorbed("generated_depend_elimination", NO_DEPENDS)
split_assign = absorbed(
    "split_assign", "an Assign is a value here; the alias of its result says where it lands, and no order hangs on it"
)
spread_update_state = absorbed("spread_update_state", NO_MONADS)
extend_output_for_update_state = absorbed("extend_output_for_update_state", NO_MONADS)
merge_output_for_update_state = absorbed("merge_output_for_update_state", NO_MONADS)
fold_updatestates = absorbed("fold_updatestates", NO_MONADS)
shrink_update_state = absorbed("shrink_update_state", NO_MONADS)
save_output_shape = absorbed(
    "save_output_shape", "passes keep the types of the outputs, and a check after each says so"
)
rewrite_output_shape = absorbed("rewrite_output_shape", "passes keep the types of the outputs: nothing was lost")
convert_mix_type = absorbed(
    "convert_mix_type", "a type rule gives each operator one data type: operands of mixed types never come this far"
)
symbol_engine_builder = absorbed("symbol_engine_builder", "every extent is a number or a polynomial of symbols already")
symbol_engine_extender = absorbed("symbol_engine_extender", "shapes of packets are computed by the plan, from symbols")
reduce_fake_output_memory = absorbed(
    "reduce_fake_output_memory", "an output that only exists because of an alias is stored in the operand's memory"
)
graph_kernel_cluster_for_dynshape = absorbed(
    "graph_kernel_cluster_for_dynshape", "graph_kernel_cluster takes symbolic extents: there is no second clustering"
)
dyn_graph_kernel_splitter = absorbed(
    "dyn_graph_kernel_splitter", "graph_kernel_splitter takes symbolic extents: there is no second splitting"
)
graph_kernel_build = absorbed(
    "graph_kernel_build", "kernels are compiled by the driver, after the graph is done; optimizing alone compiles none"
)
set_infershape_funtor = absorbed(
    "set_infershape_funtor", "a kernel's output shapes are polynomials of its input shapes"
)
bind_value_to_graph = absorbed("bind_value_to_graph", "constants are nodes of the graph that uses them")
deal_with_side_effect = absorbed("deal_with_side_effect", "aliases are carried along by every pass")
add_attr = absorbed("add_attr", "a kernel's node tells its target and name without further attributes")
convert_call_to_prim = absorbed("convert_call_to_prim", "a kernel is a node with a body from the start, not a call")
