"""The pipeline: which pass runs where, from which level on, and why.

The order of this table is the order of the passes. Numbers are those of MindSpore 2.10 where it has the pass and start
at 20 where it has not, so that ``--disable_pass=2.3`` means the same there and here. The numbers left out are those of
passes without work here: see :mod:`graphkernel.mindspore.passes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from graphkernel.conditions import PACKETS, RECOMPUTES, by_name, dvm, flag, level, not_dvm, on
from graphkernel.declarations import Catalogue, builtin_catalogue
from graphkernel.errors import CatalogueError, nearest
from graphkernel.mindspore.flag_text import warn
from graphkernel.mindspore.passes import FIRST_OF_OURS, IDLE_STEPS, REASONS, STAGES, IdleStep
from graphkernel.options import Options
from graphkernel.passes.axis_normalizer import axis_normalizer
from graphkernel.passes.base import LOGGER, Pass, Step, unchanged
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.passes.compact_tensor_liveness import compact_tensor_liveness
from graphkernel.passes.cse import cse1, graph_kernel_cse
from graphkernel.passes.effects.assign_in_place import assign_in_place
from graphkernel.passes.effects.atomic_clean import atomic_clean
from graphkernel.passes.effects.csr_atomic_add_process import csr_atomic_add_process
from graphkernel.passes.effects.optimize_assign import optimize_assign
from graphkernel.passes.effects.stitch_atomic_clean import stitch_atomic_clean
from graphkernel.passes.effects.tensor_inplace import tensor_inplace
from graphkernel.passes.expand import graph_kernel_expander
from graphkernel.passes.finalise_kernels import graph_kernel_seal
from graphkernel.passes.floatstatus_addn_fusion import floatstatus_addn_fusion
from graphkernel.passes.floatstatus_fusion import floatstatus_fusion
from graphkernel.passes.fold import constant_folding
from graphkernel.passes.format.lines_as_images import lines_as_images
from graphkernel.passes.format.padded_windows import padded_windows
from graphkernel.passes.format.to_nhwc_format import to_nhwc_format
from graphkernel.passes.format.tokens_as_images import tokens_as_images
from graphkernel.passes.format.transform_op_optimizer import transform_op_optimizer
from graphkernel.passes.format.turned_factors import turned_factors
from graphkernel.passes.format.volumes_as_images import volumes_as_images
from graphkernel.passes.format.winograd import winograd
from graphkernel.passes.graph_kernel_op_combiner import graph_kernel_op_combiner
from graphkernel.passes.graph_kernel_recompute import graph_kernel_recompute
from graphkernel.passes.insert_pad_ops import insert_pad_ops
from graphkernel.passes.named_fusion import FUSION_GROUP, WRITTEN_OUT
from graphkernel.passes.named_fusion.matmul import host_matmul_all_reduce
from graphkernel.passes.named_kernels import named_by_cost, named_kernels
from graphkernel.passes.own_products import own_products
from graphkernel.passes.parallel_fusion import parallel_fusion
from graphkernel.passes.patch_products import patch_products
from graphkernel.passes.precision.cast_matmul_fusion import cast_matmul_fusion
from graphkernel.passes.precision.convert_bfloat16 import convert_bfloat16
from graphkernel.passes.precision.decrease_compute_precision import decrease_compute_precision
from graphkernel.passes.precision.decrease_transfer_precision import decrease_transfer_precision
from graphkernel.passes.precision.integer_convolutions import integer_convolutions
from graphkernel.passes.precision.integer_products import integer_products
from graphkernel.passes.precision.inverse_totals import inverse_totals
from graphkernel.passes.precision.quantized_between import quantized_between
from graphkernel.passes.precision.quantized_images import quantized_images
from graphkernel.passes.precision.quotients_behind_products import quotients_behind_products
from graphkernel.passes.precision.raise_reduction_precision import raise_reduction_precision
from graphkernel.passes.precision.reorder_ops import reorder_ops
from graphkernel.passes.redundant_output import eliminate_redundant_output
from graphkernel.passes.rows_before_sums import rows_before_sums
from graphkernel.passes.rows_behind_sums import rows_behind_sums
from graphkernel.passes.shape.few_segments import few_segments
from graphkernel.passes.shape.kernel_packet import kernel_packet
from graphkernel.passes.shape.own_gathers import own_gathers
from graphkernel.passes.shape.own_pads import own_pads
from graphkernel.passes.shape.shape_ops_splitter import shape_ops_splitter
from graphkernel.passes.shape.shrink_only_shape_needed import shrink_only_shape_needed
from graphkernel.passes.simplify import arithmetic_simplify
from graphkernel.passes.split import graph_kernel_splitter
from graphkernel.passes.stored_weights import stored_weights
from graphkernel.passes.transpose_matmul_fusion import transpose_matmul_fusion

WRITTEN_OUT_STAGE, FUSION_GROUP_STAGE = "written_out", "fusion_group"
"""The stages of the named fusions, the first ours. They run first: what they look for is expanded afterwards."""

OPERATOR_LISTS = (
    "enable_cluster_ops", "enable_cluster_ops_only", "disable_cluster_ops", "disable_expand_ops", "enable_packet_ops_only",
    "disable_packet_ops",
)  # fmt: skip
"""The flags whose entries name operators. Names to expand and rules are checked by the passes that look them up."""

PATTERN_LISTS = ("enable_fusion_pattern_only", "disable_fusion_pattern")

# fmt: off
PIPELINE = (
    *(Step(entry, WRITTEN_OUT_STAGE, number, level=1, when=on("ascend"),
           why="models say in several operators what the named fusions know as one")
      for number, entry in enumerate(WRITTEN_OUT, 20)),

    *(Step(entry, FUSION_GROUP_STAGE, number, level=1, when=on("ascend"),
           why="what the device has one operator for is recognised before it is expanded")
      for number, entry in enumerate(FUSION_GROUP)),

    Step(cse1, "preprocess", 3, level=1, why="what the model says twice is expanded and fused once"),
    Step(graph_kernel_cse, "preprocess", 7, level=1, why="what the model says twice is expanded and fused once"),

    Step(transpose_matmul_fusion, "cluster", 0, level=2, when=on("ascend"),
         why="a product reads its operands either way round: the transposition costs nothing"),
    Step(transpose_matmul_fusion, "cluster", 22, level=2, when=on("cpu", "gpu"),
         why="the same pays for the libraries of other targets, where MindSpore leaves it out"),
    Step(floatstatus_fusion, "cluster", 1, level=2, when=dvm,
         why="the idiom is known as long as its operators stand alone"),
    Step(floatstatus_addn_fusion, "cluster", 2, level=2, when=on("gpu") | dvm,
         why="a status that is added up joins the kernels around it"),
    Step(graph_kernel_expander, "cluster", 3, level=1, why="basic operators are all that the later steps know"),
    Step(named_by_cost, "cluster", 23, level=1, when=on("ascend"),
         why="what can join a named operator is basic now, and nothing is clustered yet"),
    Step(graph_kernel_op_combiner, "cluster", 21, level=1, when=flag("enable_parallel_op_combine"),
         why="before folding, which joins weights, and before clusters, which take the slices"),
    Step(constant_folding, "cluster", 20, level=2, why="what is known at compile time needs no kernel"),
    Step(few_segments, "cluster", 35, level=2, when=on("cpu"),
         why="who reads a sum is basic, and clusters are to hold the rows that are read in its place"),
    Step(own_gathers, "cluster", 26, level=2, when=on("cpu"),
         why="what is constant is folded, and clusters are to hold what is a kernel of ours"),
    Step(integer_products, "cluster", 31, level=2, when=on("cpu"),
         why="what is constant is folded, and what quantizes beside such products is no library's any more"),
    Step(quantized_images, "cluster", 32, level=2, when=on("cpu"),
         why="before it is asked which images have channels last, and pairs are looked at one by one"),
    Step(integer_convolutions, "cluster", 39, level=2, when=on("cpu"),
         why="before it is asked which images have channels last, and operators are basic, so that signs are known"),
    Step(quantized_between, "cluster", 24, level=2, when=on("cpu"),
         why="operators are basic, so that it is known which of them kernels hold, and nothing is clustered yet"),
    Step(tokens_as_images, "cluster", 38, level=2, when=on("cpu"),
         why="what is constant is folded, and regions of images are looked for next"),
    Step(lines_as_images, "cluster", 36, level=2, when=on("cpu"),
         why="operators are basic, and regions of images are looked for next"),
    Step(volumes_as_images, "cluster", 40, level=2, when=on("cpu"),
         why="operators are basic, and regions of images are looked for next"),
    Step(padded_windows, "cluster", 37, level=2, when=on("cpu"),
         why="lines are images, whose convolutions pad them themselves"),
    Step(own_pads, "cluster", 41, level=2, when=on("cpu"),
         why="convolutions have taken what they pad themselves, and regions of images are looked for next"),
    Step(to_nhwc_format, "cluster", 28, level=2, when=on("cpu"),
         why="what is constant is folded, and what is a product with channels last is one from here on"),
    Step(patch_products, "cluster", 27, level=2, when=on("cpu"),
         why="before products are found to be kernels of ours"),
    Step(stored_weights, "cluster", 30, level=2, when=on("cpu"),
         why="what is constant is folded, and products are not shared out yet"),
    Step(own_products, "cluster", 25, level=2, when=on("cpu"),
         why="what is constant is folded, and clusters are to hold what is a kernel of ours"),
    Step(quotients_behind_products, "cluster", 33, level=2, when=on("cpu"),
         why="both products of an attention are kernels of ours, and what is between them is basic"),
    Step(turned_factors, "cluster", 34, level=2, when=on("cpu"),
         why="it is known which products are kernels of ours"),
    Step(graph_kernel_cluster, "cluster", 4, level=1, why="clusters as large as can be leave the splitter all choices"),
    Step(eliminate_redundant_output, "cluster", 6, level=1, why="later steps must not keep alive what nobody uses"),

    Step(reorder_ops, "highlevelopt1", 0, level=2, why="moving a narrow tensor is cheaper than moving a wide one"),
    Step(axis_normalizer, "highlevelopt1", 1, level=1, why="one spelling of axes halves the rules and the patterns"),
    Step(insert_pad_ops, "highlevelopt1", 2, level=1, when=on("gpu"), why="tensor cores want whole tiles"),
    Step(arithmetic_simplify, "highlevelopt1", 3, level=2, why="whole clusters show what cancels, before they are cut"),
    Step(cast_matmul_fusion, "highlevelopt1", 20, level=2, when=on("ascend"),
         why="2.3 gives products their bias"),
    Step(convert_bfloat16, "highlevelopt1", 4, level=1, when=dvm, why="the vector unit has no bfloat16 arithmetic"),
    Step(raise_reduction_precision, "highlevelopt1", 5, level=2, why="sums of many 16-bit numbers lose what they add"),
    Step(inverse_totals, "highlevelopt1", 21, level=2, when=on("cpu"),
         why="simplification would write the product as a quotient again"),
    Step(graph_kernel_cse, "highlevelopt1", 6, level=2, why="expansion and simplification make equal sub-expressions"),
    Step(transform_op_optimizer, "highlevelopt1", 7, level=2,
         why="transpositions that meet cancel before the clusters are cut around them"),

    Step(shape_ops_splitter, "split", 1, level=1, why="fusion patterns want reshapes with one user"),
    Step(shrink_only_shape_needed, "split", 3, level=1, when=dvm,
         why="nobody computes a tensor to learn its shape"),
    Step(graph_kernel_splitter, "split", 4, level=1, why="kernels are decided here and nowhere else"),
    Step(graph_kernel_cse, "split", 7, level=1, why="two equal kernels on equal operands are one"),
    Step(eliminate_redundant_output, "split", 9, level=1, why="kernels store only what is read"),

    Step(graph_kernel_recompute, "highlevelopt2", 0, level=1, when=RECOMPUTES,
         why="only between final kernels is it known how long a value lives"),
    Step(atomic_clean, "highlevelopt2", 1, level=2, when=on("ascend") & not_dvm,
         why="wide sums are spread over blocks, which must start from zero; on gpu a kernel adds up partial sums itself"),
    Step(stitch_atomic_clean, "highlevelopt2", 2, level=1, when=by_name,
         why="sums over the rows of stitched kernels would meet in cleared memory; kernels add up partial sums instead"),
    Step(tensor_inplace, "highlevelopt2", 3, level=1, when=flag("enable_auto_tensor_inplace"),
         why="after the sums have their operands, whose memory is taken"),
    Step(csr_atomic_add_process, "highlevelopt2", 4, level=1, when=by_name,
         why="scattered sums would need zeros where nothing is added; kernels clear their results themselves"),
    Step(optimize_assign, "highlevelopt2", 5, level=2, why="what is assigned need not be stored a second time"),
    Step(decrease_transfer_precision, "highlevelopt2", 20, level=1, when=flag("enable_low_precision"),
         why="kernels are known now, and so is what is carried between them"),
    Step(decrease_compute_precision, "highlevelopt2", 21, level=1, when=flag("enable_low_precision"),
         why="what is carried in 16 bits is computed in 16 bits"),
    Step(eliminate_redundant_output, "highlevelopt2", 8, level=1, when=level(2) | RECOMPUTES,
         why="what is recomputed or written in place need not be stored as well"),

    Step(parallel_fusion, "combine", 2, level=1, when=on("gpu", "ascend") & flag("enable_parallel_fusion"),
         why="all kernels are known: those that leave the device idle are launched together"),
    Step(parallel_fusion, "combine", 20, level=3, when=on("cpu") & flag("enable_parallel_fusion"),
         why="where MindSpore leaves it out: kernels of less work than a call are called together"),
    Step(assign_in_place, "combine", 21, level=1, when=on("cpu"),
         why="all kernels are known, and kernels that write in place are launched alone"),
    Step(compact_tensor_liveness, "combine", 3, level=2, when=on("gpu", "ascend"),
         why="the last step that moves kernels; clearing memory early would keep it alive"),

    Step(named_kernels, "build", 21, level=1, when=on("ascend"),
         why="named operators that are left have no neighbours to join; other passes see what they stand for"),
    Step(host_matmul_all_reduce, "build", 22, level=2, when=on("cpu") & flag("enable_allreduce_prologue_fusion"),
         why="where MindSpore leaves it out: products that kernels left are cut in rows, which are sent as they are done"),
    Step(rows_before_sums, "build", 24, level=2, when=on("cpu") & flag("enable_allreduce_prologue_fusion"),
         why="where MindSpore leaves it out: products in kernels are cut in rows in the same way"),
    Step(rows_behind_sums, "build", 23, level=2, when=on("cpu") & flag("enable_allreduce_epilogue_fusion"),
         why="where MindSpore leaves it out: what follows such a product need not wait for all of its rows"),
    Step(winograd, "build", 25, level=2, when=on("cpu"),
         why="it is decided what is in a kernel with a convolution, and stays there"),
    Step(graph_kernel_seal, "build", 20, level=1,
         why="the kernel generator sees operands it can take and names that are true"),

    Step(kernel_packet, "kernelpacket", 20, level=0, when=PACKETS,
         why="the operators that stay outside of kernels take their small computations along"),
)
# fmt: on


def steps_for(options: Options, catalogue: Catalogue | None = None) -> tuple[Step, ...]:
    """Every step in order, each enabled or not; at level 0 only those of level 0 may be.

    A step is on when its level and its condition fit, unless ``disable_pass`` names it; ``enable_pass`` forces it on.
    Entries of flags that name no step, operator or pattern, or change nothing, are told to the user at once. Passes of
    the catalogue that say their own place are put there.
    """
    declared = catalogue or builtin_catalogue()
    steps = _placed(_own_steps(PIPELINE), declared.passes)
    _check_names(options, steps)
    _check_lists(options, declared)
    named = [step.pass_.name for step in steps if step.stage == FUSION_GROUP_STAGE and _fits(step, options)]
    if named:
        LOGGER.info("graph kernel passes: %s.", ",".join(named))
    return tuple([step if _is_enabled(step, options) else replace(step, enabled=False) for step in steps])


def _is_enabled(step: Step, options: Options) -> bool:
    named = set(step.spellings)
    if named & set(options.disable_pass):
        return False
    return _fits(step, options) or (options.opt_level > 0 and bool(named & set(options.enable_pass)))


def _fits(step: Step, options: Options) -> bool:
    """True when the step runs though no flag names it."""
    return step.level <= options.opt_level and step.when(options)


def _check_names(options: Options, steps: Sequence[Step]) -> None:
    """Tells of entries of enable_pass and disable_pass that name nothing, and of those without effect."""
    if not (options.enable_pass or options.disable_pass):
        return
    known = {spelling for step in steps for spelling in step.spellings}
    done = {step for step in steps if not (_fits(step, options) or set(step.spellings) & set(options.enable_pass))}
    for name in options.disable_pass:
        meant = {step for step in steps if name in step.spellings}
        if not meant:
            options.complain(f'graph kernel pass disable flag "{name}" is not valid!{nearest(name, known)}')
        elif meant <= done:
            warn(f'graph kernel pass disable flag "{name}" is not valid! What it names is off without it')
        done |= meant
    for name in options.enable_pass:
        meant = {step for step in steps if name in step.spellings}
        if not meant:
            options.complain(f'graph kernel pass enable flag "{name}" is not valid!{nearest(name, known)}')
        elif all(_fits(step, options) or not _is_enabled(step, options) for step in meant):
            warn(f'graph kernel pass enable flag "{name}" is not valid! {_no_effect(meant, options)}')


def _check_lists(options: Options, catalogue: Catalogue) -> None:
    """Tells of entries of the operator and pattern lists that name nothing: MindSpore passes over them in silence."""
    if not any(getattr(options, flag_name) for flag_name in (*OPERATOR_LISTS, *PATTERN_LISTS)):
        return
    operators = dict.fromkeys(entry.name for entry in (*catalogue.ops, *catalogue.expanders))
    patterns = [pattern.name for pattern in catalogue.fusion_patterns]
    for flag_name in OPERATOR_LISTS:
        for name in getattr(options, flag_name):
            if name not in operators:
                options.complain(f"flag --{flag_name}: there is no operator {name!r}{nearest(name, operators)}")
    for flag_name in PATTERN_LISTS:
        for part in getattr(options, flag_name):
            if not any(part in name for name in patterns):
                options.complain(f"flag --{flag_name}: no pattern has {part!r} in its name{nearest(part, patterns)}")


def _no_effect(meant: Iterable[Step], options: Options) -> str:
    """Why an entry of enable_pass switches nothing on."""
    if options.opt_level == 0:
        return "At opt_level 0 no pass runs"
    beaten = any(set(step.spellings) & set(options.disable_pass) for step in meant)
    return "disable_pass names it too, and wins" if beaten else "What it names is on without it"


@lru_cache(maxsize=2)
def _own_steps(table: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps of a ``table``, which is the same for every graph, with their numbers."""
    return _numbered(_with_idle(table))


def _with_idle(steps: Iterable[Step]) -> Iterator[Step]:
    """The table with MindSpore's passes without work here, at their places."""
    waiting = list(reversed(IDLE_STEPS))
    for step in steps:
        while waiting and _comes_before(waiting[-1], step):
            yield _idle_step(waiting.pop())
        yield step
    yield from map(_idle_step, reversed(waiting))


def _comes_before(idle: IdleStep, step: Step) -> bool:
    if step.stage not in STAGES or idle.stage != step.stage:
        return step.stage in STAGES and STAGES.index(idle.stage) < STAGES.index(step.stage)
    return idle.before == step.number or idle.number < step.number < FIRST_OF_OURS


def _idle_step(idle: IdleStep) -> Step:
    reason = REASONS[idle.name]
    return Step(
        Pass(idle.name, unchanged, reason, absorbed=True), idle.stage, idle.number, idle.level, reason, idle.when
    )


def _numbered(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(
        replace(step, stage_number=STAGES.index(step.stage)) if step.stage in STAGES else step for step in steps
    )


def _placed(steps: tuple[Step, ...], passes: Iterable[Pass]) -> tuple[Step, ...]:
    """The table with the passes that say their own place behind the steps that they name."""
    for entry in passes:
        if entry.place is not None:
            steps = _insert(steps, entry)
    return steps


def _insert(steps: tuple[Step, ...], entry: Pass) -> tuple[Step, ...]:
    place = entry.place
    assert place is not None, "only passes with a place are inserted"
    positions = {f"{step.stage}.{step.pass_.name}": index for index, step in enumerate(steps)}
    if place.after not in positions:
        raise CatalogueError(
            f"pass {entry.name!r} wants to run after {place.after!r}, which is no step{nearest(place.after, positions)}; "
            f"steps: {', '.join(positions)}"
        )
    index = positions[place.after]
    stage = steps[index].stage
    number = 1 + max(max(step.number for step in steps if step.stage == stage), 99)
    made = Step(entry, stage, number, place.level, place.why, stage_number=steps[index].stage_number)
    return (*steps[: index + 1], made, *steps[index + 1 :])
