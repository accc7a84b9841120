"""The pass winograd: convolutions of 3 x 3 windows with 16 multiplications where there were 36.

Before and after::

    y = Fused(x, w) { relu(Conv2D(x, w)) }   ==>   v = Fused(x) { tiles of 4 x 4 pixels, transformed }    v: f32[16, T, C]
                                                   m = Fused(v, u) { BatchMatMul(v, u) }    u: f32[16, C, O], from w
                                                   y = Fused(m) { relu(tiles of 2 x 2 pixels, transformed back) }

                                             ==>   y = Fused(x, u) { all of that, row of tiles by row of tiles }

    dw = Conv2DBackpropFilter(dy, x)         ==>   :mod:`graphkernel.passes.format.gradient_by_tiles`, from the same v

``A' ((G w G') * (B' x B)) A`` for each tile of 2 x 2 results (:mod:`graphkernel.passes.format.tiles`). Whatever else the kernel
does stays where it is. ``u = G w G'`` is computed once where the windows are a constant, by a kernel in each run where they are
learnt. All that reads the same image by tiles reads one ``v``, also when its gradient is asked for much later; but where tiles
of a large image would leave the caches, each convolution has its own, in one kernel.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

import numpy as np

from graphkernel.cluster.convolution_cost import Ways, fits_tiles, tiles_cost
from graphkernel.cluster.fuse_nodes import call_of, with_unique_labels
from graphkernel.cluster.naming import called
from graphkernel.cluster.own_products import is_own
from graphkernel.ops.library.conv_gradients import CONV2D_BACKPROP_FILTER
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.format.gradient_by_tiles import gradient_by_tiles
from graphkernel.passes.format.layouts import FLOAT, PLAIN_PRODUCT
from graphkernel.passes.format.tile_pieces import Pieces, by_pieces, is_by_pieces, results_of
from graphkernel.passes.format.tiles import (
    PLACES,
    WEIGHT_ROWS,
    WINDOW,
    Tiling,
    extents,
    stacked,
    transformed,
)
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.operator import Inferred
from kernelgen.tensor.operators.elemwise import MUL
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.nn import CONV2D, is_nhwc
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import TensorType

PIECE = 4096
"""Windows that are transformed at a time: with what becomes of them 800 KB in float64."""

MOST_HELD = 16 << 20
"""Bytes of tiles that are kept for all that reads them; larger ones are cut again, so that a network's training does not hold
four times the bytes of each image until its gradient comes."""

Bodies = dict[Tiling, Graph]
"""What cuts images in tiles."""
Cut = dict[tuple[Value, Tiling], Value]
"""The tiles of an image."""
Joins = dict[tuple[TensorType, TensorType, str], tuple[Value, Pieces]]
"""A parameter for products of one type under one label, and what they become for results of one type."""


@dataclass(frozen=True)
class _Known:
    """What was made for one convolution and serves each that is like it: nodes never change, so kernels share them."""

    inferred: Inferred
    bodies: Bodies = field(default_factory=Bodies)
    cut: Cut = field(default_factory=Cut)
    joins: Joins = field(default_factory=Joins)

    def tiles(self, image: Value, tiling: Tiling, name: str) -> Value:
        """[16, T, C]: the tiles of an image for what has this ``name``, by a kernel of its own where there is none yet."""
        body = self.bodies.get(tiling) or self.bodies.setdefault(tiling, _cutting(image, tiling, self.inferred))
        found = self.cut.get((image, tiling))
        if found is None or _bytes(found) > MOST_HELD:
            found = self.cut[image, tiling] = call_of(called(body, f"{name}_tiles"), (image,)).out
        return found


@graph_pass
def winograd(graph: Graph, context: Context) -> Graph:
    """Takes convolutions of ours out of their kernels where a model of both says that their tiles take no longer.

    Gradients of windows with channels last were chosen by such a model before, and stand alone.
    """
    chosen = {node: found for node in graph.operators if (found := _convolutions(node))}
    gradients = {
        node for node in graph.operators if node.op is CONV2D_BACKPROP_FILTER and node.attrs.bool(OWN_KERNEL, False)
    }
    if not chosen and not gradients:
        return graph
    known = _Known(context.inferred)

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node in gradients:
            return (_gradient(node, args, known),)
        for convolution in chosen[node]:
            context.log.add(winograd.name, "by-tiles", convolution.name, message=str(_cost(node, convolution)))
        return _without(node, args, chosen[node], known)

    return with_unique_labels(graph.rebuild(rewrite, {*chosen, *gradients}))


def _gradient(node: Node, args: tuple[Value, ...], known: _Known) -> Value:
    dy, image = args
    tiles = known.tiles(image, Tiling.of(image, dy, node.attrs.ints("pad", (0, 0, 0, 0))), node.name)
    return gradient_by_tiles(node, tiles, dy)


def _convolutions(kernel: Node) -> tuple[Node, ...]:
    """Those of a kernel that are faster by tiles: of its own operands."""
    if kernel.body is None or kernel.body.aliases:
        return ()
    found = (node for node in kernel.body.operators if node.op is CONV2D and is_own(node) and _is_plain(node))
    return tuple(
        node for node in found if set(node.args) <= set(kernel.body.inputs) and _cost(kernel, node).by_tiles
    )  # fmt: skip


def _cost(kernel: Node, convolution: Node) -> Ways:
    assert kernel.body is not None, "there is a convolution in it"
    weights = kernel.args[kernel.body.inputs.index(convolution.args[1])]
    return tiles_cost(convolution, is_learnt=not weights.is_known)


def _is_plain(node: Node) -> bool:
    """Whether it is one with channels last, and no bias."""
    shape = (*node.args[0].type.shape[1:], *node.out.type.shape[1:])
    return is_nhwc(node.attrs) and len(node.args) == 2 and fits_tiles(node, node.args[1].type.shape[:2], shape)


def _without(kernel: Node, args: tuple[Value, ...], convolutions: Sequence[Node], known: _Known) -> tuple[Value, ...]:
    """The kernel's results, from one that reads products of tiles instead of having the convolutions."""
    body = kernel.body
    assert body is not None, "as asked before"
    given = dict(zip(body.inputs, args, strict=True))
    joined: dict[Node, Pieces] = {}
    parameters: list[Value] = []
    operands: list[Value] = []
    for number, node in enumerate(convolutions):
        image, weights = (given[arg] for arg in node.args)
        if tiles_cost(node, is_learnt=not weights.is_known).is_inside:
            operands.append(_known_factors(weights, Builder(inferred=known.inferred)))
            parameter = Builder().parameter(f"factors{number}", operands[-1].type)
            joined[node] = _inside(node, parameter, known)
        else:
            operands.append(_products(image, weights, node, known))
            parameter, joined[node] = _joined(operands[-1].type, node, f"tiles{number}", known)
        parameters.append(parameter)
    made = Graph(body.name, (*body.inputs, *parameters), _with_pieces(body, joined, known).outputs)
    return call_of(with_unique_labels(made), (*args, *operands)).outs


def _inside(node: Node, factors: Value, known: _Known) -> Pieces:
    """The results of a convolution from its image, whose tiles and their products with ``factors`` stay in the kernel."""
    (image, _), builder = node.args, Builder(inferred=known.inferred)
    tiling = _tiling(image, node)
    products = builder.emit(BATCH_MATMUL, tiling.emit(image, builder), factors, name=node.name, **PLAIN_PRODUCT)
    return results_of(_by_tile(products, node, tiling, builder), node.out.type.shape, builder)


def _by_tile(products: Value, node: Node, tiling: Tiling, builder: Builder) -> Value:
    """[16, N, tiles, phases, tiles, phases, O]: the ``products`` of all tiles for a ``node``."""
    count, (*_, channels) = extents(node.out)
    return builder.emit(RESHAPE, products, shape=(PLACES, count, *tiling.places, channels))


def _with_pieces(body: Graph, joined: Mapping[Node, Pieces], known: _Known) -> Graph:
    """The body with the results of its convolutions in pieces, and with what computes point by point behind in them."""
    builder = Builder(inferred=known.inferred)
    cut: dict[Value, Pieces] = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node in joined:
            pieces = joined[node]
        else:
            like = next(cut[arg] for arg in args if arg in cut)
            pieces = by_pieces(node, [cut[a] if a in cut and cut[a].is_like(like) else a for a in args], builder)
        whole = pieces.whole(builder)
        whole = replace(whole.node, name=node.name).out
        cut[whole] = pieces
        return (whole,)

    return body.rebuild(rewrite, _in_pieces(body, joined))


def _in_pieces(body: Graph, convolutions: Container[Node]) -> frozenset[Node]:
    """The ``convolutions`` of a body and what computes point by point behind them."""
    found: set[Node] = set()
    for node in body.operators:
        image = next((arg for arg in node.args if arg.node in found and arg.type.shape == node.out.type.shape), None)
        if node in convolutions or (image is not None and is_by_pieces(node, image)):
            found.add(node)
    return frozenset(found)


def _products(image: Value, weights: Value, node: Node, known: _Known) -> Value:
    """[16, N, tiles, phases, tiles, phases, O]: products of all tiles with transformed windows, place by place in a tile."""
    tiling = _tiling(image, node)
    tiles = known.tiles(image, tiling, node.name)
    builder = Builder(inferred=known.inferred)
    operands = (tiles, _known_factors(weights, builder) if weights.is_known else _learnt_factors(weights, node))
    given = tuple(
        builder.parameter(name, value.type) for name, value in zip(("tiles", "factors"), operands, strict=True)
    )
    found = builder.emit(BATCH_MATMUL, *given, name=node.name, **PLAIN_PRODUCT)
    body = Graph(f"{node.name}_products", given, (_by_tile(found, node, tiling, builder),))
    return call_of(with_unique_labels(body), operands).out


def _tiling(image: Value, node: Node) -> Tiling:
    down, across = node.attrs.ints("dilation", (1, 1))
    return Tiling.of(image, node.out, node.attrs.ints("pad", (0, 0, 0, 0)), (down, across))


def _cutting(image: Value, tiling: Tiling, inferred: Inferred) -> Graph:
    """The body that gives the tiles of such images."""
    builder = Builder(inferred=inferred)
    whole = builder.parameter("image", image.type)
    return with_unique_labels(Graph("tiles", (whole,), (tiling.emit(whole, builder),)))


def _bytes(value: Value) -> int:
    """Of a number of images that is not known, of one."""
    return value.type.dtype.itemsize * prod(dim for dim in value.type.shape if isinstance(dim, int))


def _known_factors(weights: Value, builder: Builder) -> Value:
    """``G w G'`` of windows that are a constant."""
    return builder.derived(_factors, weights, of=TensorType((PLACES, *weights.type.shape[2:]), FLOAT))


def _learnt_factors(weights: Value, node: Node) -> Value:
    """``G w G'`` of windows that change from run to run: a row of ``G`` is one of 0, 1 and -1, times 1 or a half."""
    builder = Builder()
    windows = builder.parameter("windows", weights.type)
    ends = weights.type.shape[2:]
    cut = partial(builder.emit, STRIDED_SLICE, windows, strides=(1, 1, 1, 1))
    grid = [
        [
            builder.emit(RESHAPE, cut(begin=(row, column, 0, 0), end=(row + 1, column + 1, *ends)), shape=ends)
            for column in range(WINDOW)
        ]
        for row in range(WINDOW)
    ]
    signs, sizes = np.sign(WEIGHT_ROWS).astype(int).tolist(), np.abs(WEIGHT_ROWS).max(1)
    lines = zip(transformed(grid, signs, builder), np.outer(sizes, sizes).astype(np.float32), strict=True)
    places = [
        part if size == 1 else builder.emit(MUL, part, builder.constant(size))
        for line, own in lines for part, size in zip(line, own, strict=True)
    ]  # fmt: skip
    body = Graph(f"{node.name}_factors", (windows,), (stacked(places, builder),))
    return call_of(with_unique_labels(body), (weights,)).out


def _factors(windows: np.ndarray) -> np.ndarray:
    """``G w G'`` of windows [3, 3, C, O], as [16, C, O] in float32; computed in float64, in pieces that stay in a cache."""
    every, left = windows.reshape(WINDOW * WINDOW, -1), np.array(WEIGHT_ROWS)
    both = np.kron(left, left)
    found = np.empty((PLACES, every.shape[1]), np.float32)
    for start in range(0, every.shape[1], PIECE):
        found[:, start : start + PIECE] = both @ every[:, start : start + PIECE].astype(np.float64)
    found.setflags(write=False)
    return found.reshape(-1, *windows.shape[2:])


def _joined(products: TensorType, node: Node, label: str, known: _Known) -> tuple[Value, Pieces]:
    """A parameter for the products of a convolution's tiles, and the convolution's result from them."""
    kind = products, node.out.type, label
    if kind not in known.joins:
        parameter = Builder().parameter(label, products)
        builder = Builder(inferred=known.inferred)
        known.joins[kind] = parameter, results_of(parameter, node.out.type.shape, builder)
    return known.joins[kind]
