"""The passes of nests for each kind of machine, as tables of stages that each say why they stand where they do.

A stage also names the forms (:mod:`kernelgen.nest.form`) that its pass relies on and makes. Compiling checks none of them;
tests run whole tables with :func:`run_checked`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from kernelgen.errors import NestError
from kernelgen.machines.gpu.device import GpuMachine
from kernelgen.nest.form import (
    CHAINS_JOINED,
    DISTRIBUTED,
    GRIDS,
    INITIALIZED,
    SPACES_DECIDED,
    UNCUT,
    WITHOUT_STORAGE,
    NestForm,
)
from kernelgen.nest.nodes import Block, Grid, Nest
from kernelgen.plan import Plan
from kernelgen.transforms.ascend.materialise_operands import round_factors
from kernelgen.transforms.common.array_contraction import contract, contract_large, contract_shared, is_contracted
from kernelgen.transforms.common.array_regions import regions_apart
from kernelgen.transforms.common.hoist_invariants import hoist
from kernelgen.transforms.common.initialize_reductions import initialize
from kernelgen.transforms.common.merge_accumulations import merge_accumulations
from kernelgen.transforms.common.reuse_output_storage import share
from kernelgen.transforms.common.scalarize import scalarize
from kernelgen.transforms.common.settle_divisions import settle_divisions
from kernelgen.transforms.common.split_index_sets import peel
from kernelgen.transforms.cpu.byte_pairs import byte_pairs
from kernelgen.transforms.cpu.byte_words import byte_words
from kernelgen.transforms.cpu.digit_sums import digit_sums
from kernelgen.transforms.cpu.factored_sums import factor_sums
from kernelgen.transforms.cpu.fuse_epilogue import fuse_epilogues
from kernelgen.transforms.cpu.jam_panels import jam_panels
from kernelgen.transforms.cpu.jam_stencils import jam_stencils
from kernelgen.transforms.cpu.join_panels import join
from kernelgen.transforms.cpu.keep_rows import keep_rows
from kernelgen.transforms.cpu.pack_panels import pack
from kernelgen.transforms.cpu.prefetching.blocks import prefetch_blocks
from kernelgen.transforms.cpu.prefetching.factors import prefetch_factors
from kernelgen.transforms.cpu.prefetching.later_rows import prefetch_later_rows
from kernelgen.transforms.cpu.prefetching.panels import prefetch
from kernelgen.transforms.cpu.prefetching.rows import prefetch_rows
from kernelgen.transforms.cpu.prefetching.summed_rows import prefetch_summed_rows
from kernelgen.transforms.cpu.prefetching.transposed import prefetch_transposed
from kernelgen.transforms.cpu.prepare_constants import prepare
from kernelgen.transforms.cpu.register_blocking import registers
from kernelgen.transforms.cpu.share_panels import share_panels
from kernelgen.transforms.cpu.tables_of_steps import tables_of_steps
from kernelgen.transforms.cpu.unroll_and_jam import jam_rows
from kernelgen.transforms.cpu.window_borders import borders
from kernelgen.transforms.gpu.assign_memory_spaces import places
from kernelgen.transforms.gpu.barriers import barriers
from kernelgen.transforms.gpu.block_reduction import partial_results
from kernelgen.transforms.gpu.cache_rows import rows
from kernelgen.transforms.gpu.cut_into_launches import chains, to_grids
from kernelgen.transforms.gpu.distribute_threads import distribute
from kernelgen.transforms.gpu.fuse_epilogue import join_tails
from kernelgen.transforms.gpu.fuse_prologue import join_heads
from kernelgen.transforms.gpu.horizontal_fusion import side_by_side
from kernelgen.transforms.gpu.product_recognition import is_dealt
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
    needs: tuple[NestForm, ...] = ()
    """Of a pass of nests: what it relies on in the nest that it is given."""
    gives: tuple[NestForm, ...] = ()
    """What it promises of the nest that it makes."""

    def on(self, value: T, plan: Plan) -> T:
        """The pass on a value."""
        return self.run(value) if self.sizes is None else self.run(value, self.sizes(plan))

    @property
    def name(self) -> str:
        """The function's name."""
        return self.run.__name__


def run_checked(stage: Stage[Nest], nest: Nest, plan: Plan) -> Nest:
    """The pass of a ``stage`` on a ``nest``, by this ``plan``.

    Raises NestError where the nest lacks a form that it needs, or the result one that it gives.
    """
    _require(stage.needs, nest, f"{stage.name} needs a nest of the form")
    made = stage.on(nest, plan)
    _require(stage.gives, made, f"{stage.name} was to make a nest of the form")
    return made


def _require(forms: tuple[NestForm, ...], nest: Nest, message: str) -> None:
    missing = [form.name for form in forms if not form.holds(nest)]
    if missing:
        raise NestError(f"{message}: {'; '.join(missing)}")


def _threads_meet(nest: Nest) -> bool:
    """In the grids that are not the program of one thread yet."""
    waiting = (part for part in nest.body.statements if not (isinstance(part, Grid) and is_dealt(part)))
    whole = replace(nest, body=Block(tuple(waiting)))
    return barriers(whole) == whole


STORAGE_DECIDED = NestForm("no workspace is what one iteration alone uses of one element", is_contracted)
SCALARS_BOUND = NestForm(
    "locals of one element that are stored once are bindings", lambda nest: scalarize(nest) == nest
)
BINDINGS_HOISTED = NestForm("bindings stand as far out as they may", lambda nest: hoist(nest) == nest)
BARRIERS_PLACED = NestForm("threads meet between accesses that conflict", _threads_meet)

NEST_STAGES: tuple[Stage[Nest], ...] = (
    Stage(initialize, "accumulators start from their neutral element where their loop starts", gives=(INITIALIZED,)),
    Stage(
        byte_pairs,
        "where bytes become halves of words rows are made as such, before words of four take what is left",
        lambda plan: plan.cpu.unit.adds_pairs,
        needs=(WITHOUT_STORAGE,),
    ),
    Stage(byte_words, "terms of bytes are one word before constants and panels are laid out by words"),
    Stage(
        digit_sums,
        "words of weights are laid out like other constants, and sums are no locals yet",
        lambda plan: plan.cpu.unit.adds_bytes,
        needs=(INITIALIZED,),
    ),
    Stage(
        prepare,
        "what constants alone decide is laid out as the loops read it, before panels copy it",
        lambda plan: plan.cpu.unit.lanes,
    ),
    Stage(
        share_panels,
        "what all blocks of rows read is laid out before the first one, and not copied again for each",
        lambda plan: plan.cpu.unit.lanes,
        needs=(WITHOUT_STORAGE, INITIALIZED),
    ),
    Stage(regions_apart, "whole panels and columns beside them are told apart before loops over panels join"),
    Stage(
        join, "prepared panels are the same for all rows and for what follows, and stay in a cache for one loop alone"
    ),
    Stage(
        pack,
        "what row blocks read again lies together, while the rows are still one loop",
        lambda plan: plan.cpu.panel,
        needs=(INITIALIZED,),
    ),
    Stage(borders, "terms outside of an image are known, and sums are no locals yet"),
    Stage(jam_panels, "vectors of panels that are read once are laid out, and sums are no locals yet"),
    Stage(registers, "a block of results stays put while its reduction runs"),
    Stage(factor_sums, "results are locals, and rows that are one sum are not jammed yet"),
    Stage(tables_of_steps, "blocks and panels are laid out, which know no tables, and storage is not decided"),
    Stage(
        fuse_epilogues,
        "blocks of results are in locals, tables are laid out, and what is not stored needs no storage",
        lambda plan: plan.cpu.unit.registers,
    ),
    Stage(contract, "storage is decided when the loops are known", needs=(INITIALIZED,), gives=(STORAGE_DECIDED,)),
    Stage(
        contract_large,
        "what does not fit the stack has at least no more memory than is alive",
        needs=(STORAGE_DECIDED,),
    ),
    Stage(share, "a temporary that keeps its full size may still need no memory of its own", needs=(STORAGE_DECIDED,)),
    Stage(jam_rows, "rows whose number the mapping could not divide are worth as much", lambda plan: plan.cpu.jam),
    Stage(merge_accumulations, "unrolled rows meet in registers before they touch the partial result"),
    Stage(scalarize, "a local of one element is a register", needs=(STORAGE_DECIDED,), gives=(SCALARS_BOUND,)),
    Stage(
        jam_stencils,
        "rows that read each other's elements are bindings and stores by now, and read them once",
        needs=(SCALARS_BOUND,),
    ),
    Stage(settle_divisions, "loops are as they stay, and what their steps make whole does not change in lanes"),
    Stage(
        hoist, "what does not change in a loop is computed before it", needs=(SCALARS_BOUND,), gives=(BINDINGS_HOISTED,)
    ),
    Stage(keep_rows, "values that loops over one row share are bindings that move no further"),
    Stage(
        prefetch,
        "loops are as they stay, and each turn may ask for its share of what comes next",
        sizes=lambda plan: plan.cpu.ahead,
    ),
    Stage(prefetch_blocks, "the same for the rows of the next block, and for what follows the sums of this one"),
    Stage(prefetch_factors, "the same for factors of products that come in tiles"),
    Stage(prefetch_summed_rows, "the same for rows that are added up several at once, which are as many streams"),
    Stage(prefetch_rows, "the same for loops of tiles, of which some read arguments and others compute"),
    Stage(prefetch_transposed, "the same for tiles that are transposed"),
    Stage(prefetch_later_rows, "the same for loops that compute what an earlier one has read"),
)
ASCEND_STAGES: tuple[Stage[Nest], ...] = (
    Stage(initialize, "accumulators start from their neutral element where their loop starts", gives=(INITIALIZED,)),
    Stage(contract, "storage is decided when the loops are known", needs=(INITIALIZED,), gives=(STORAGE_DECIDED,)),
    Stage(
        share,
        "a temporary too large for the unified buffer may still need no memory of its own",
        needs=(STORAGE_DECIDED,),
    ),
    Stage(scalarize, "a local of one element is a register", needs=(STORAGE_DECIDED,), gives=(SCALARS_BOUND,)),
    Stage(
        hoist, "what does not change in a loop is computed before it", needs=(SCALARS_BOUND,), gives=(BINDINGS_HOISTED,)
    ),
    Stage(peel, "places are final, and only loops of tiles are worth more code", needs=(BINDINGS_HOISTED,)),
    Stage(round_factors, "the cube unit takes factors from memory, and bindings have moved to where they stay"),
)


def gpu_stages(device: GpuMachine) -> tuple[Stage[Nest], ...]:
    """The passes of nests for devices of many threads, by what those can do together."""
    return (
        Stage(
            initialize, "accumulators start from their neutral element where their loop starts", gives=(INITIALIZED,)
        ),
        Stage(
            join_heads,
            "an operand that costs a few cycles needs no launch and no memory of its own",
            needs=(UNCUT, WITHOUT_STORAGE),
        ),
        Stage(
            join_tails,
            "what follows a product needs its results while they are in registers",
            needs=(UNCUT, WITHOUT_STORAGE),
        ),
        Stage(
            sink,
            "what a row computes once must not keep its columns in one thread, and needs no memory",
            needs=(UNCUT, WITHOUT_STORAGE),
        ),
        Stage(
            to_grids,
            "what is one launch is known before its storage is",
            needs=(UNCUT, WITHOUT_STORAGE),
            gives=(GRIDS,),
        ),
        Stage(
            contract_shared,
            "storage is decided when the loops are known",
            lambda plan: device,
            needs=(INITIALIZED, GRIDS, WITHOUT_STORAGE),
            gives=(STORAGE_DECIDED,),
        ),
        Stage(
            share,
            "a temporary too large for shared memory may still need no memory of its own",
            needs=(STORAGE_DECIDED,),
        ),
        Stage(merge_accumulations, "unrolled rows meet in registers before they touch the partial result"),
        Stage(scalarize, "a local of one element is a register", needs=(STORAGE_DECIDED,), gives=(SCALARS_BOUND,)),
        Stage(
            hoist,
            "what does not change in a loop is computed before it",
            needs=(SCALARS_BOUND,),
            gives=(BINDINGS_HOISTED,),
        ),
        Stage(
            chains,
            "bindings have moved out of thread loops that are one loop",
            needs=(GRIDS, BINDINGS_HOISTED),
            gives=(CHAINS_JOINED,),
        ),
        Stage(
            rows,
            "thread loops are as they stay, and what they reduce is still in one place",
            lambda plan: device,
            needs=(GRIDS, CHAINS_JOINED),
        ),
        Stage(
            partial_results,
            "what threads accumulate into together is combined once, behind the loop",
            lambda plan: device,
            needs=(GRIDS, CHAINS_JOINED),
        ),
        Stage(
            places,
            "an array whose elements are dealt to the threads needs no memory that they share",
            lambda plan: device,
            needs=(GRIDS, CHAINS_JOINED),
            gives=(SPACES_DECIDED,),
        ),
        Stage(
            barriers,
            "only now is it known which thread touches what",
            needs=(GRIDS, CHAINS_JOINED, SPACES_DECIDED),
            gives=(BARRIERS_PLACED,),
        ),
        Stage(
            product_tiles,
            "loads, casts and the tail of a product stand where they are, bindings and guards are settled",
            lambda plan: device,
            needs=(GRIDS, SPACES_DECIDED, BARRIERS_PLACED),
        ),
        Stage(
            distribute,
            "every thread knows its own iterations",
            lambda plan: device,
            needs=(GRIDS, SPACES_DECIDED, BARRIERS_PLACED),
            gives=(DISTRIBUTED,),
        ),
        Stage(
            side_by_side,
            "only now is it known how many blocks and threads a launch has",
            lambda plan: device,
            needs=(GRIDS, DISTRIBUTED),
        ),
    )
