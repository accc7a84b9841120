"""The way from a description to a nest, as tables of stages that each say why they stand where they do.

desc -> drop_dead -> ... -> legalize_types
     -> build -> fold -> group -> privatise -> relations -> schedule -> plan -> mapped -> proof -> loops
     -> initialize -> ... -> hoist (cpu), distribute -> races (gpu)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, singledispatch

from kernelgen.ascendc.types import UB
from kernelgen.canonical.argument_shapes import reshape_arguments
from kernelgen.canonical.axes import normal_axes
from kernelgen.canonical.broadcasts import write_out_broadcasts
from kernelgen.canonical.common_subexpressions import share_subexpressions
from kernelgen.canonical.constant_folding import fold_constants
from kernelgen.canonical.copy_propagation import propagate_copies
from kernelgen.canonical.dead_code import drop_dead
from kernelgen.canonical.groups_in_lanes import groups_in_lanes
from kernelgen.canonical.identifiers import plain_names
from kernelgen.canonical.implied_broadcasts import imply_broadcasts
from kernelgen.canonical.output_names import name_outputs
from kernelgen.canonical.reshapes import drop_reshapes
from kernelgen.canonical.synonyms import canonical_names
from kernelgen.canonical.text import show_desc
from kernelgen.canonical.three_address import three_address
from kernelgen.canonical.unsupported_types import legal_types
from kernelgen.canonical.window_padding import pad_images
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.errors import ArgumentError
from kernelgen.machines.ascend.description import Machine as AscendMachine
from kernelgen.machines.cpu import CPU, CpuMachine
from kernelgen.machines.gpu.device import GpuMachine
from kernelgen.machines.usual import MACHINES, Machine
from kernelgen.nest.nodes import Nest
from kernelgen.nest.text import show
from kernelgen.nest_stages import ASCEND_STAGES, NEST_STAGES, Stage, gpu_stages
from kernelgen.plan import BandPlan, Partials, Plan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.grouping.column_sums import column_sums
from kernelgen.poly.grouping.direct_results import accumulate_in_outputs
from kernelgen.poly.grouping.fold_axes import fold
from kernelgen.poly.grouping.forwarded_stores import forward_stores
from kernelgen.poly.grouping.merge_groups import group
from kernelgen.poly.grouping.overlapped_tiles import Fitting, fit_tiles, overlap_tiles
from kernelgen.poly.grouping.places_inside import places_inside
from kernelgen.poly.grouping.privatise import privatise
from kernelgen.poly.grouping.row_blocks import block_rows
from kernelgen.poly.grouping.scatter_by_owner import take_own_terms
from kernelgen.poly.lower_scop import Choice, to_loops
from kernelgen.poly.mapping import ascend as map_ascend
from kernelgen.poly.mapping import cpu as map_cpu
from kernelgen.poly.mapping import gpu as map_gpu
from kernelgen.poly.model.scop import Scop
from kernelgen.poly.model.text import show_scop
from kernelgen.poly.proof.races import prove_races
from kernelgen.poly.proof.resource_limits import prove_room
from kernelgen.poly.proof.schedule_proof import Fact, Proof
from kernelgen.poly.proof.vector_alignment import prove_alignment
from kernelgen.stage_log import Trail
from kernelgen.tensor.dims import Shape
from kernelgen.tensor.dtypes import Category

DESC_STAGES: tuple[Stage[KernelDesc], ...] = (
    Stage(drop_dead, "what nobody reads must not decide anything"),
    Stage(canonical_names, "the passes below know one name for each meaning"),
    Stage(normal_axes, "equal reductions are written alike, and what moves nothing is a reshape"),
    Stage(pad_images, "windows meet no border: what is around an image is written by whoever writes the image"),
    Stage(three_address, "parts of compound operators can be shared, and targets need not know the compounds"),
    Stage(fold_constants, "a constant that was broadcast is an operand, and hides no reshape or copy"),
    Stage(write_out_broadcasts, "from here on shapes say which operators broadcast"),
    Stage(imply_broadcasts, "a broadcast that its reader does anyway would keep families of shapes apart"),
    Stage(propagate_copies, "equal operands must have equal names before anything is compared"),
    Stage(drop_reshapes, "element-wise operators have no shape of their own"),
    Stage(share_subexpressions, "every pass above makes more operators equal"),
    Stage(reshape_arguments, "what reshapes are left at inputs and outputs cost nothing"),
    Stage(name_outputs, "the three passes above leave copies where an output has to have its name"),
)


def _partials(plan: Plan) -> Partials:
    """When partial results pay on a processor."""
    return plan.cpu.partials.of_part(plan.stands_for)


SCOP_STAGES: tuple[Stage[Scop], ...] = (
    Stage(fold, "fewer and longer loops before anything depends on their number"),
    Stage(forward_stores, "pieces of pieces are stored once, before groups take what is copied for what is computed"),
    Stage(group, "one statement per phase keeps isl fast and values in registers", _partials),
    Stage(
        privatise,
        "reductions without parallel loops, and rows beside columns, are known once groups are",
        _partials,
    ),
    Stage(accumulate_in_outputs, "what is only moved afterwards needs no memory of its own, whatever order it is in"),
    Stage(
        block_rows,
        "what one product hands on to another shares loops over blocks of rows",
        lambda plan: plan.cpu,
    ),
    Stage(places_inside, "products of tiles stay with what makes their places, row by row"),
    Stage(
        overlap_tiles,
        "what stencils hand on shares loops over tiles, which stay in a cache",
        lambda plan: plan.cpu,
    ),
    Stage(
        column_sums,
        "what follows a sum of rows must not take its loops apart, column by column",
        lambda plan: plan.cpu.unit.lanes,
    ),
)


def ascend_scop_stages(machine: AscendMachine) -> tuple[Stage[Scop], ...]:
    """The passes of scops for an Ascend machine, by its cores."""
    partials = map_ascend.partials_on(machine)
    return (
        *_grouped(partials),
        Stage(
            privatise,
            "cores that share no result need no meeting but one",
            lambda plan: partials.of_part(plan.stands_for),
        ),
        Stage(
            fit_tiles,
            "what stencils hand on stays in the unified buffer, with room for what a core reads and writes meanwhile",
            lambda plan: Fitting(machine.memories[UB] // 2, machine.cores // 2),
        ),
    )


def gpu_scop_stages(device: GpuMachine) -> tuple[Stage[Scop], ...]:
    """The passes of scops for devices of many threads, by what those have room for."""
    partials = map_gpu.partials_on(device)
    return (
        *_grouped(partials),
        Stage(take_own_terms, "thousands of threads look at all terms sooner than one of them adds them up in order"),
        Stage(
            privatise,
            "a device has thousands of threads, and a launch is a barrier for all of them",
            lambda plan: partials.of_part(plan.stands_for),
        ),
        Stage(
            fit_tiles,
            "what stencils hand on stays in shared memory where there are tiles for all multiprocessors",
            lambda plan: Fitting(device.array_bytes, device.processors),
        ),
    )


def _grouped(partials: Partials) -> tuple[Stage[Scop], ...]:
    """The first passes of scops, with a machine's own sizes in place of a plan's for processors."""
    fold_axes, forward, by_phase, *_ = SCOP_STAGES
    return fold_axes, forward, replace(by_phase, sizes=lambda plan: partials.of_part(plan.stands_for))


@dataclass(frozen=True)
class Proving:
    """A proof about a finished nest: its facts join those of the schedule."""

    run: Callable[[Nest], tuple[Fact, ...]]
    name: str
    why: str


def gpu_proofs(device: GpuMachine) -> tuple[Proving, ...]:
    """The proofs about nests for a device of many threads."""
    return (
        Proving(
            lambda nest: prove_room(nest, device), "room", "what a block holds is known in the finished nest alone"
        ),
        Proving(prove_alignment, "alignment", "what moves together is known in the finished nest alone"),
        Proving(prove_races, "races", "barriers and places of threads are known in the finished nest alone"),
    )


@dataclass(frozen=True)
class Pipeline:
    """The way to a kind of machine: what it computes with, how loops are mapped to it, its passes and proofs of nests, and the
    forms of operators that it has alone.
    """

    types: Stage[KernelDesc]
    scop_stages: tuple[Stage[Scop], ...]
    choose: Choice
    nest_stages: tuple[Stage[Nest], ...]
    proofs: tuple[Proving, ...] = ()
    forms: tuple[Stage[KernelDesc], ...] = ()


@singledispatch
def pipeline_for(machine: Machine) -> Pipeline:
    """The way to a machine. A further kind of machines is registered with its type: ``@pipeline_for.register``.

    Raises ArgumentError for a kind without stages.
    """
    raise ArgumentError(
        f"no stages for {machine!r}; known: {', '.join(kind.__name__ for kind in pipeline_for.registry)}"
    )


@pipeline_for.register
def _(machine: CpuMachine) -> Pipeline:
    lanes = Stage(groups_in_lanes, "how channels lie decides whether images are padded, and which loops there are")
    return Pipeline(_types("cpu"), SCOP_STAGES, map_cpu.choose, NEST_STAGES, forms=(lanes,))


@pipeline_for.register
def _(machine: AscendMachine) -> Pipeline:
    return Pipeline(_types("ascend"), ascend_scop_stages(machine), partial(map_ascend.choose, machine), ASCEND_STAGES)


@pipeline_for.register
def _(machine: GpuMachine) -> Pipeline:
    choose = partial(map_gpu.choose, machine)
    return Pipeline(_types("gpu"), gpu_scop_stages(machine), choose, gpu_stages(machine), gpu_proofs(machine))


def pipeline_named(machine: Machine | str) -> Pipeline:
    """The way to a machine, or to the usual one of that name."""
    return pipeline_for(MACHINES[machine] if isinstance(machine, str) else machine)


def _types(target: str) -> Stage[KernelDesc]:
    return Stage(
        legal_types(target), "types are the target's: what it computes with is known, and only Casts are added"
    )


@dataclass(frozen=True)
class Lowered:
    """A description lowered to a nest, with the proof of its schedule, the plan it follows, and the trail of its stages."""

    nest: Nest
    proof: Proof
    plan: Plan
    trail: Trail
    inputs: tuple[str, ...] = ()
    """What the nest calls the inputs of the description, also those that it does not take."""


def lower(
    desc: KernelDesc, plan: Plan, machine: Machine | str = CPU, constants: frozenset[int] = frozenset()
) -> Lowered:
    """Runs all stages for a machine or a usual one of its kind, on names that may be printed.

    ``constants`` are the positions of inputs that hold the same in every call.

    Raises UnsupportedError, ProofError, or ArgumentError when the plan does not fit.
    """
    trail, chosen = Trail(), pipeline_named(machine)
    nest, proof, bands = to_raw_nest(desc, plan, chosen, trail, constants)
    inputs = tuple(buffer.name for buffer in nest.buffers[: len(desc.inputs)])
    for step in chosen.nest_stages:
        nest = trail.run(step.name, lambda step=step, nest=nest: step.on(nest, plan), show)
    for check in chosen.proofs:
        facts = trail.run(check.name, lambda check=check, nest=nest: check.run(nest), _lines)
        proof = Proof((*proof.facts, *facts))
    return Lowered(nest, proof, replace(plan, bands=bands), trail, inputs)


def to_raw_nest(
    desc: KernelDesc, plan: Plan, machine: Pipeline, trail: Trail, constants: frozenset[int] = frozenset()
) -> tuple[Nest, Proof, tuple[BandPlan, ...]]:
    """The scheduled nest before its first pass, the proof of its schedule and the plan of its bands; raises like lower."""
    desc = plain_names(desc)
    shapes = tuple(_shape_of_parts(tensor) for tensor in (*desc.inputs, *desc.outputs))
    for rule in (*machine.forms, *DESC_STAGES, machine.types):
        desc = trail.run(rule.name, lambda rule=rule, desc=desc: rule.run(desc), show_desc)
    scop = trail.run("build", lambda: replace(to_scop(desc), argument_shapes=shapes), show_scop)
    scop = replace(scop, constants=frozenset(scop.buffers[position].name for position in constants))
    for stage in machine.scop_stages:
        scop = trail.run(stage.name, lambda stage=stage, scop=scop: stage.on(scop, plan), show_scop)
    nest, proof, bands = to_loops(scop, plan, machine.choose, trail)
    return replace(nest, one_launch=desc.parallel_fusion is not None), proof, bands


def _lines(facts: tuple[Fact, ...]) -> str:
    return "\n".join(map(str, facts))


def _shape_of_parts(tensor: Tensor) -> Shape:
    """The shape that callers pass; a complex array is passed as its real and imaginary parts."""
    return (*tensor.shape, 2) if tensor.dtype.category is Category.COMPLEX else tensor.shape
