"""cupy as host library: operators that no kernel computes, on the device, by the numpy meaning of their declaration.

numpy's functions hand over to cupy's where an operand is cupy's (``__array_function__``, ``__array_ufunc__``), so that one
meaning serves both. An operator whose meaning needs what cupy lacks is computed on the host, with a copy there and back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphkernel.runtime.cuda.cublas import Cublas
from graphkernel.runtime.steps.steps import Action, Slots, Step
from kernelgen.system.escape import line
from kernelgen.tensor.bind import concrete_attrs
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.types import Attrs

LOGGER = logging.getLogger(__name__)
FOREIGN = (TypeError, AttributeError, NotImplementedError, ValueError)
"""What cupy raises for functions, arguments and data types that it does not have."""

Meaning = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class CupyHost:
    """No regions: every operator alone, on the device."""

    cupy: Any = field(repr=False)
    cublas: Cublas | None = field(default=None, repr=False)
    name: str = "cupy"
    regions: bool = False

    def group(self, node: Node) -> str | None:
        """None: there are no regions."""
        return None

    def why_not(self, node: Node) -> str:
        """Nothing to explain: this is the choice."""
        return "the host library is cupy"

    def absorbs(self, graph: Graph, kernel: Node) -> bool:
        """False: every operator is computed by itself."""
        return False

    def region(self, name: str, nodes: Sequence[Node], slots: Mapping[Value, int], outputs: Sequence[Value]) -> Step:
        """Never asked for, because no node is in a group. Raises NotImplementedError."""
        raise NotImplementedError("cupy runs single operators")

    def single(self, node: Node, slots: Mapping[Value, int]) -> Step:
        """One operator."""
        return CupyStep(
            node,
            tuple(slots[arg] for arg in node.args),
            tuple(slots[value] for value in node.outs),
            self.cupy,
            self.cublas,
        )


@dataclass(frozen=True, eq=False)
class CupyStep:
    """Computes one operator on cupy's arrays."""

    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    cupy: Any = field(repr=False)
    cublas: Cublas | None = field(default=None, repr=False)
    buffered: bool = False

    @property
    def name(self) -> str:
        """The operator's label."""
        return self.node.name

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values; what cupy cannot do is found out by its first run."""
        return _CupyAction(self, concrete_attrs(self.node.attrs, symbols))


@dataclass(eq=False)
class _CupyAction:
    """``why_on_host`` is what cupy complained about; empty as long as it did not."""

    step: CupyStep
    attrs: Attrs
    why_on_host: str = ""

    def __call__(self, slots: Slots) -> None:
        operands = [slots[slot] for slot in self.step.inputs]
        results = self._on_host(operands) if self.why_on_host else self._on_device(operands)
        for slot, result in zip(self.step.outputs, results, strict=True):
            slots[slot] = self._own(result, operands)

    def _on_device(self, operands: Sequence[Any]) -> Sequence[Any]:
        try:
            results = self._results(self._meaning(operands), operands)
        except FOREIGN as error:
            self.why_on_host = str(error) or type(error).__name__
            LOGGER.warning(
                "%s (%s) is computed on the host: %s", line(self.step.name), self.step.node.op.name, line(str(error))
            )
            return self._on_host(operands)
        return results

    def _meaning(self, operands: Sequence[Any]) -> Meaning:
        """The operator's meaning, but for products that cuBLAS has."""
        node, cublas = self.step.node, self.step.cublas
        if cublas is not None and node.op in (MATMUL, BATCH_MATMUL) and cublas.takes(operands):
            return cublas.product
        return _meaning(node, operands)

    def _on_host(self, operands: Sequence[Any]) -> Sequence[Any]:
        return self._results(self.step.node.op.meaning, [self.step.cupy.asnumpy(operand) for operand in operands])

    def _results(self, meaning: Meaning, operands: Sequence[Any]) -> Sequence[Any]:
        with np.errstate(all="ignore"):
            found = meaning(*operands, attrs=self.attrs)
        return found if isinstance(found, tuple) else (found,)

    def _own(self, result: Any, operands: Sequence[Any]) -> Any:
        """The result on the device, in memory of its own."""
        array = self.step.cupy.asarray(result)
        borrowed = array.base is not None or any(array is operand for operand in operands)
        return array.copy() if borrowed else array


def host_steps(actions: Sequence[object]) -> tuple[tuple[str, str], ...]:
    """The operators that turned out to need the host, each with the reason."""
    return tuple(
        (f"{action.step.node.op.name} {action.step.name}", action.why_on_host)
        for action in actions
        if isinstance(action, _CupyAction) and action.why_on_host
    )


def _meaning(node: Node, operands: Sequence[Any]) -> Meaning:
    """The operator's meaning, but for products in half precision: cuBLAS adds up in float32 by itself."""
    plain = node.op in (MATMUL, BATCH_MATMUL) and len(operands) == 2
    return _product if plain and all(operand.dtype == np.float16 for operand in operands) else node.op.meaning


def _product(a: Any, b: Any, *, attrs: Attrs) -> Any:
    left = np.swapaxes(a, -1, -2) if attrs.bool("transpose_a", False) else a
    right = np.swapaxes(b, -1, -2) if attrs.bool("transpose_b", False) else b
    return np.matmul(left, right)
