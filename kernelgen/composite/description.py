"""KernelDesc: a graph to make a kernel of, and what AKG's composite JSON says of a kernel beside its graph.

:mod:`kernelgen.composite.read` and :mod:`kernelgen.composite.write` read and write it; :mod:`kernelgen.semantics` is its
meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.dims import Shape, symbols_of
from kernelgen.tensor.dtypes import DType
from kernelgen.tensor.graph import CONSTANT, Alias, Graph, Node, Value
from kernelgen.tensor.types import DEFAULT_LAYOUT, TensorType

Scalar = bool | int | float


@dataclass(frozen=True)
class Tensor:
    """A named tensor. ``value`` is an inline constant (of a tensor with one element)."""

    name: str
    shape: Shape
    dtype: DType
    layout: str = DEFAULT_LAYOUT
    value: Scalar | None = None

    @property
    def type(self) -> TensorType:
        """Shape, data type and layout."""
        return TensorType(self.shape, self.dtype, self.layout)


@dataclass(frozen=True)
class ParallelFusion:
    """AKG's ``parallel_fusion``: groups of output tensors that are computed side by side in one kernel.

    Devices launch such a kernel once (:mod:`kernelgen.transforms.gpu.horizontal_fusion`). ``core_num`` are the blocks that
    AKG gives each group; here they follow from the loops of each.
    """

    fusion_type: str
    sub_graph: tuple[tuple[str, ...], ...]
    core_num: tuple[int, ...]


@dataclass(frozen=True)
class KernelDesc:
    """A fused kernel: a graph, whose inputs and outputs give the calling convention, in order.

    An output that is aliased to an input is none that callers are given: it is what that input holds after the kernel.
    Results need not have the types that an operator's rule gives: AKG's JSON says what they have. ``steps`` are the operators
    in the order in which somebody wrote them, less or more than the outputs need; without any the graph's own order counts.
    ``process`` is AKG's target word (``cpu``, ``cuda``, ``aicore``). ``buffer_stitch`` names the results that pass through
    shared memory in AKG; here what does follows from who reads them, and it is only passed on.
    """

    graph: Graph
    steps: tuple[Node, ...] = field(default=(), compare=False, repr=False)
    process: str = "cpu"
    version: int = 0
    target_info: Attrs = field(default_factory=Attrs)
    buffer_stitch: tuple[tuple[str, ...], ...] = ()
    parallel_fusion: ParallelFusion | None = None

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.graph.name

    def renamed(self, name: str) -> KernelDesc:
        """The same kernel under another name."""
        return replace(self, graph=replace(self.graph, name=name))

    @property
    def operators(self) -> tuple[Node, ...]:
        """The operators in the order in which they run."""
        return self.steps or self.graph.operators

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """What callers give."""
        return tuple(Tensor(value.node.name, value.shape, value.dtype, value.layout) for value in self.graph.inputs)

    @cached_property
    def results(self) -> tuple[Value, ...]:
        """The values that callers are given, in order."""
        stored = {alias.output for alias in self.graph.aliases}
        return tuple(value for place, value in enumerate(self.graph.outputs) if place not in stored)

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """What callers are given."""
        stored = {alias.output for alias in self.graph.aliases}
        names = [name for place, name in enumerate(self.graph.output_names) if place not in stored]
        return tuple(Tensor(name, v.shape, v.dtype, v.layout) for name, v in zip(names, self.results, strict=True))

    @cached_property
    def updates(self) -> Mapping[int, Value]:
        """Position of an input that the kernel writes in place -> what it holds afterwards."""
        return {alias.input: self.graph.outputs[alias.output] for alias in sorted(self.graph.aliases, key=_input)}

    @property
    def updated_inputs(self) -> tuple[int, ...]:
        """Positions of the inputs that the kernel writes in place."""
        return tuple(self.updates)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of all input and output shapes, sorted; empty for a static kernel."""
        return symbols_of(dim for t in (*self.inputs, *self.outputs) for dim in t.shape)

    @cached_property
    def hinted(self) -> frozenset[str]:
        """The names of values that stitched and parallel groups hold."""
        groups = (*self.buffer_stitch, *(self.parallel_fusion.sub_graph if self.parallel_fusion else ()))
        return frozenset(name for group in groups for name in group)


def _input(alias: Alias) -> int:
    return alias.input


def number_of(value: Value) -> Scalar | None:
    """The number that a constant of one element is; None for what is computed."""
    return None if value.constant is None else value.constant.item()


def constant(number: complex, type_: TensorType, name: str = "constant") -> Value:
    """A constant of one element: ``number`` in the data type and shape of ``type_``, under ``name``."""
    with np.errstate(over="ignore"):
        content = np.full([1] * type_.rank, number).astype(type_.dtype.numpy)
    return Node(CONSTANT, (), Attrs(), (type_,), name, data=ConstantData.of(content)).out
