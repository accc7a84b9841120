"""The way from a description to a nest, as tables of stages that each say why they stand where they do.

desc -> drop_dead -> ... -> legalize_types
     -> build -> fold -> group -> privatise -> relations -> schedule -> plan -> mapped -> proof -> loops
     -> initialize -> ... -> hoist (cpu), distribute -> races (gpu)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from kernelgen.canonical.argument_shapes import reshape_arguments
from kernelgen.canonical.axes import normal_axes
from kernelgen.canonical.broadcasts import write_out_broadcasts
from kernelgen.canonical.common_subexpressions import share_subexpressions
from kernelgen.canonical.constant_folding import fold_constants
from kernelgen.canonical.copy_propagation import propagate_copies
from kernelgen.canonical.dead_code import drop_dead
from kernelgen.canonical.identifiers import plain_names
from kernelgen.canonical.implied_broadcasts import imply_broadcasts
from kernelgen.canonical.output_names import name_outputs
from kernelgen.canonical.reshapes import drop_reshapes
from kernelgen.canonical.synonyms import canonical_names
from kernelgen.canonical.text import show_desc
from kernelgen.canonical.three_address import three_address
from kernelgen.canonical.unsupported_types import legal_types
from kernelgen.composite.description import KernelDesc, TensorDesc
from kernelgen.machines.device_features import DEVICES, Abilities
from kernelgen.nest.nodes import Nest
from kernelgen.nest.text import show
from kernelgen.plan import Plan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.grouping.fold_axes import fold
from kernelgen.poly.grouping.merge_groups import group
from kernelgen.poly.grouping.privatise import privatise
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
from kernelgen.transforms.ascend.materialise_operands import round_factors
from kernelgen.transforms.common.array_contraction import contract, contract_large, contract_shared
from kernelgen.transforms.common.hoist_invariants import hoist
from kernelgen.transforms.common.initialize_reductions import initialize
from kernelgen.transforms.common.merge_accumulations import merge_accumulations
from kernelgen.transforms.common.reuse_output_storage import share
from kernelgen.transforms.common.scalarize import scalarize
from kernelgen.transforms.common.split_index_sets import peel
from kernelgen.transforms.cpu.pack_panels import pack
from kernelgen.transforms.cpu.register_blocking import registers
from kernelgen.transforms.cpu.unroll_and_jam import jam_rows
from kernelgen.transforms.gpu.assign_memory_spaces import places
from kernelgen.transforms.gpu.barriers import barriers
from kernelgen.transforms.gpu.block_reduction import partial_results
from kernelgen.transforms.gpu.cache_rows import rows
from kernelgen.transforms.gpu.cut_into_launches import chains, to_grids
from kernelgen.transforms.gpu.distribute_threads import distribute
from kernelgen.transforms.gpu.fuse_epilogue import join_tails
from kernelgen.transforms.gpu.fuse_prologue import join_heads
from kernelgen.transforms.gpu.horizontal_fusion import side_by_side
from kernelgen.transforms.gpu.product_tiles import product_tiles
from kernelgen.transforms.gpu.sink_row_values import sink

T = TypeVar("T")


@dataclass(frozen=True)
class Stage(Generic[T]):
    """A pass of a description, a scop or a nest onto itself."""

    run: Callable[..., T]
    why: str
    sizes: Callable[[Plan], object] | None = None
    """What the pass takes from the plan beside the value."""

    def on(self, value: T, plan: Plan) -> T:
        """The pass on a value."""
        return self.run(value) if self.sizes is None else self.run(value, self.sizes(plan))

    @property
    def name(self) -> str:
        """The function's name."""
        return self.run.__name__


DESC_STAGES: tuple[Stage[KernelDesc], ...] = (
    Stage(drop_dead, "what nobody reads must not decide anything"),
    Stage(canonical_names, "the passes below know one name for each meaning"),
    Stage(normal_axes, "equal reductions are written alike, and what moves nothing is a reshape"),
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
SCOP_STAGES: tuple[Stage[Scop], ...] = (
    Stage(fold, "fewer and longer loops before anything depends on their number"),
    Stage(group, "one statement per phase keeps isl fast and values in registers", lambda plan: plan.cpu.partials),
    Stage(
        privatise,
        "reductions without parallel loops, and rows beside columns, are known once groups are",
        lambda plan: plan.cpu.partials,
    ),
)
NEST_STAGES: tuple[Stage[Nest], ...] = (
    Stage(initialize, "accumulators start from their neutral element where their loop starts"),
    Stage(
        pack, "what row blocks read again lies together, while the rows are still one loop", lambda plan: plan.cpu.panel
    ),
    Stage(registers, "a block of results stays put while its reduction runs"),
    Stage(contract, "storage is decided when the loops are known"),
    Stage(contract_large, "what does not fit the stack has at least no more memory than is alive"),
    Stage(share, "a temporary that keeps its full size may still need no memory of its own"),
    Stage(jam_rows, "rows whose number the mapping could not divide are worth as much", lambda plan: plan.cpu.jam),
    Stage(merge_accumulations, "unrolled rows meet in registers before they touch the partial result"),
    Stage(scalarize, "a local of one element is a register"),
    Stage(hoist, "what does not change in a loop is computed before it"),
)
ASCEND_SCOP_STAGES: tuple[Stage[Scop], ...] = (
    *SCOP_STAGES[:-1],
    Stage(map_ascend.privatise_cores, "cores that share no result need no meeting but one"),
)
ASCEND_STAGES: tuple[Stage[Nest], ...] = (
    Stage(initialize, "accumulators start from their neutral element where their loop starts"),
    Stage(contract, "storage is decided when the loops are known"),
    Stage(share, "a temporary too large for the unified buffer may still need no memory of its own"),
    Stage(scalarize, "a local of one element is a register"),
    Stage(hoist, "what does not change in a loop is computed before it"),
    Stage(peel, "places are final, and only loops of tiles are worth more code"),
    Stage(round_factors, "the cube unit takes factors from memory, and bindings have moved to where they stay"),
)


def gpu_scop_stages(device: Abilities) -> tuple[Stage[Scop], ...]:
    """The passes of scops for devices of many threads, by what those have room for."""
    return (
        *SCOP_STAGES[:-1],
        Stage(take_own_terms, "thousands of threads look at all terms sooner than one of them adds them up in order"),
        Stage(
            map_gpu.privatise_blocks,
            "a device has thousands of threads, and a launch is a barrier for all of them",
            lambda plan: device,
        ),
    )


def gpu_stages(device: Abilities) -> tuple[Stage[Nest], ...]:
    """The passes of nests for devices of many threads, by what those can do together."""
    return (
        Stage(initialize, "accumulators start from their neutral element where their loop starts"),
        Stage(join_heads, "an operand that costs a few cycles needs no launch and no memory of its own"),
        Stage(join_tails, "what follows a product needs its results while they are in registers"),
        Stage(sink, "what a row computes once must not keep its columns in one thread, and needs no memory"),
        Stage(to_grids, "what is one launch is known before its storage is"),
        Stage(contract_shared, "storage is decided when the loops are known", lambda plan: device),
        Stage(share, "a temporary too large for shared memory may still need no memory of its own"),
        Stage(merge_accumulations, "unrolled rows meet in registers before they touch the partial result"),
        Stage(scalarize, "a local of one element is a register"),
        Stage(hoist, "what does not change in a loop is computed before it"),
        Stage(chains, "bindings have moved out of thread loops that are one loop"),
        Stage(rows, "thread loops are as they stay, and what they reduce is still in one place", lambda plan: device),
        Stage(
            partial_results,
            "what threads accumulate into together is combined once, behind the loop",
            lambda plan: device,
        ),
        Stage(
            places,
            "an array whose elements are dealt to the threads needs no memory that they share",
            lambda plan: device,
        ),
        Stage(barriers, "only now is it known which thread touches what"),
        Stage(
            product_tiles,
            "loads, casts and the tail of a product stand where they are, bindings and guards are settled",
            lambda plan: device,
        ),
        Stage(distribute, "every thread knows its own iterations", lambda plan: device),
        Stage(side_by_side, "only now is it known how many blocks and threads a launch has", lambda plan: device),
    )


@dataclass(frozen=True)
class Proving:
    """A proof about a finished nest: its facts join those of the schedule."""

    run: Callable[[Nest], tuple[Fact, ...]]
    name: str
    why: str


def gpu_proofs(device: Abilities) -> tuple[Proving, ...]:
    """The proofs about nests for a device of many threads."""
    return (
        Proving(
            lambda nest: prove_room(nest, device), "room", "what a block holds is known in the finished nest alone"
        ),
        Proving(prove_alignment, "alignment", "what moves together is known in the finished nest alone"),
        Proving(prove_races, "races", "barriers and places of threads are known in the finished nest alone"),
    )


@dataclass(frozen=True)
class Machine:
    """A kind of machine: what it computes with, how loops are mapped to it, the passes of its nests, proofs about them."""

    types: Stage[KernelDesc]
    scop_stages: tuple[Stage[Scop], ...]
    choose: Choice
    nest_stages: tuple[Stage[Nest], ...]
    proofs: tuple[Proving, ...] = ()


def machine_named(name: str | Abilities) -> Machine:
    """The machine of that name: cpu, ascend, or one of :data:`kernelgen.machines.device_features.DEVICES`; or a device itself.

    ascend_blocks is an Ascend machine whose copies move whole blocks.
    """
    device = DEVICES.get(name) if isinstance(name, str) else name
    if device is not None:
        choice = partial(map_gpu.choose, device)
        return Machine(_types("gpu"), gpu_scop_stages(device), choice, gpu_stages(device), gpu_proofs(device))
    machines = {
        "cpu": Machine(_types("cpu"), SCOP_STAGES, map_cpu.choose, NEST_STAGES),
        "ascend": Machine(_types("ascend"), ASCEND_SCOP_STAGES, map_ascend.choose, ASCEND_STAGES),
        "ascend_blocks": Machine(_types("ascend"), ASCEND_SCOP_STAGES, map_ascend.choose_whole_blocks, ASCEND_STAGES),
    }
    return machines[str(name)]


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


def lower(desc: KernelDesc, plan: Plan, machine: str | Abilities = "cpu") -> Lowered:
    """Runs all stages for a machine, on names that may be printed.

    Raises UnsupportedError, ProofError, or ArgumentError when the plan does not fit.
    """
    trail, chosen, desc = Trail(), machine_named(machine), plain_names(desc)
    shapes = tuple(_shape_of_parts(tensor) for tensor in (*desc.inputs, *desc.outputs))
    for rule in (*DESC_STAGES, chosen.types):
        desc = trail.run(rule.name, lambda rule=rule, desc=desc: rule.run(desc), show_desc)
    scop = trail.run("build", lambda: replace(to_scop(desc), argument_shapes=shapes), show_scop)
    for stage in chosen.scop_stages:
        scop = trail.run(stage.name, lambda stage=stage, scop=scop: stage.on(scop, plan), show_scop)
    nest, proof, bands = to_loops(scop, plan, chosen.choose, trail)
    nest = replace(nest, one_launch=desc.parallel_fusion is not None)
    for step in chosen.nest_stages:
        nest = trail.run(step.name, lambda step=step, nest=nest: step.on(nest, plan), show)
    for check in chosen.proofs:
        facts = trail.run(check.name, lambda check=check, nest=nest: check.run(nest), _lines)
        proof = Proof((*proof.facts, *facts))
    return Lowered(nest, proof, replace(plan, bands=bands), trail)


def _lines(facts: tuple[Fact, ...]) -> str:
    return "\n".join(map(str, facts))


def _shape_of_parts(tensor: TensorDesc) -> Shape:
    """The shape that callers pass; a complex array is passed as its real and imaginary parts."""
    return (*tensor.shape, 2) if tensor.dtype.category is Category.COMPLEX else tensor.shape
