"""Convolutions and blocks of them on one thread: ours beside onnxruntime's, and the share of the processor's peak.

A line is a chain of equal parts, as networks have them: layouts change at its ends only, for every contestant. Every call
takes the next of several copies of the weights, which together are larger than the last cache. All contestants and the peak
are of one run, by processor time. A share of the peak counts the multiplications of windows; what takes fewer of them may
pass all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

import graphkernel as gk
from benchmarks.beside_peak import ORT, beside_peak, values
from benchmarks.contestants import OURS, Contestant
from benchmarks.measure import turning
from benchmarks.record import Record
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.types import Attrs

if TYPE_CHECKING:
    from onnx import ModelProto

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Layer:
    """A convolution of square windows, of each channel alone where ``depthwise``; a bias, and relu6 where it is ``bounded``."""

    channels: int
    results: int
    window: int = 1
    depthwise: bool = False
    bounded: bool = True

    @property
    def weights(self) -> tuple[int, int, int, int]:
        """The shape of its weights, OIHW."""
        return self.results, 1 if self.depthwise else self.channels, self.window, self.window

    @property
    def attributes(self) -> dict[str, Any]:
        """What ONNX says of it."""
        return {"pads": [self.window // 2] * 4, "group": self.channels if self.depthwise else 1}


@dataclass(frozen=True)
class Chain:
    """Parts of the same layers for an image of ``side`` by ``side``; those that are ``residual`` add what they read."""

    name: str
    side: int
    layers: tuple[Layer, ...]
    parts: int = 3
    residual: bool = False

    @property
    def operations(self) -> int:
        """Multiplications and additions of all windows."""
        return 2 * self.side**2 * self.parts * sum(prod(layer.weights) for layer in self.layers)

    @property
    def weight_bytes(self) -> int:
        """Of one copy."""
        return 4 * self.parts * sum(prod(layer.weights) for layer in self.layers)

    @property
    def tiny(self) -> Chain:
        """One that takes no time."""
        return replace(self, side=TINY, parts=1)


TINY = 4


def _points(side: int, wide: int, narrow: int) -> Chain:
    layers = Layer(wide, narrow), Layer(narrow, wide)
    return Chain(f"1x1 {wide}-{narrow}-{wide} at {side}", side, layers)


def _windows(side: int, channels: int) -> Chain:
    return Chain(f"3x3 {channels} at {side}", side, (Layer(channels, channels, 3),))


def _inverted(side: int, narrow: int, wide: int, window: int = 3) -> Chain:
    layers = Layer(narrow, wide), Layer(wide, wide, window, depthwise=True), Layer(wide, narrow, bounded=False)
    return Chain(f"block {narrow}-{wide}-{narrow} at {side}", side, layers, residual=True)


CHAINS = (
    _points(56, 256, 64), _points(28, 512, 128), _points(14, 1024, 256), _points(7, 2048, 512),
    _windows(56, 64), _windows(28, 128), _windows(14, 256), _windows(7, 512),
    _inverted(56, 24, 144), _inverted(28, 32, 192), _inverted(14, 96, 576), _inverted(7, 160, 960),
)  # fmt: skip
"""The kinds that networks of images are made of, at the sizes at which they have them."""


def run(chains: Sequence[Chain], *, rounds: int, tiny: bool) -> Record:
    """Measures every chain, the ``tiny`` one of its kind where that is asked for, and prints a table of them."""
    return beside_peak("convolutions", chains, _contestants, _truth, rounds, tiny=tiny)


def _contestants(chain: Chain, copies: int) -> Iterator[Contestant]:
    """Each turns through its copies; an answer is that of the first."""
    image = values(1, chain.layers[0].channels, chain.side, chain.side)
    makers: dict[str, Callable[[ModelProto, Array], Callable[[], Any]]] = {OURS: _ours}
    if find_spec("onnxruntime") is not None:
        makers[ORT] = _library
    for name, make in makers.items():
        yield turning(name, [make(_model(chain, copy), image) for copy in range(copies)])


def _ours(model: ModelProto, image: Array) -> Callable[[], Any]:
    import onnx

    with TemporaryDirectory() as folder:
        onnx.save(model, path := Path(folder) / "chain.onnx")
        executable = gk.compile(gk.load(path), threads=1)
    return lambda: executable(image)


def _library(model: ModelProto, image: Array) -> Callable[[], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"image": image})


def _model(chain: Chain, copy: int) -> ModelProto:
    from onnx import TensorProto, helper, numpy_helper

    held: dict[str, Array] = {"zero": np.array(0, np.float32), "six": np.array(6, np.float32)}
    nodes: list[Any] = []
    last = "image"
    for part in range(chain.parts):
        first = last
        for number, layer in enumerate(chain.layers):
            name = f"y{part}_{number}"
            held |= dict(zip((f"{name}_w", f"{name}_b"), layer_constants(layer, copy, part), strict=True))
            nodes.append(helper.make_node("Conv", [last, f"{name}_w", f"{name}_b"], [name], **layer.attributes))
            last = name
            if layer.bounded:
                nodes.append(helper.make_node("Clip", [last, "zero", "six"], [last := f"{name}_bounded"]))
        if chain.residual:
            nodes.append(helper.make_node("Add", [first, last], [last := f"y{part}"]))
    shape = [1, chain.layers[0].channels, chain.side, chain.side]
    given, made = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in ("image", last))
    constants = [numpy_helper.from_array(value, name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "chain", given, made, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _truth(chain: Chain) -> Array:
    image = values(1, chain.layers[0].channels, chain.side, chain.side).astype(np.float64)
    for part in range(chain.parts):
        first = image
        for layer in chain.layers:
            weights, bias = layer_constants(layer, 0, part)
            attrs = Attrs.of(pad=(layer.window // 2,) * 4, group=layer.attributes["group"])
            image = CONV2D.meaning(image, weights.astype(np.float64), attrs=attrs)
            image = image + bias[:, None, None]
            image = np.clip(image, 0, 6) if layer.bounded else image
        image = image + first if chain.residual else image
    return image


def layer_constants(layer: Layer, copy: int, part: int) -> tuple[Array, Array]:
    """Weights so large that results are as large as what was read, and a bias.

    Each ``copy`` and ``part`` has numbers of its own: equal ones would lie in memory once.
    """
    size, seed = np.float32((3 / prod(layer.weights[1:])) ** 0.5), (copy, part)
    return values(*layer.weights, seed=seed) * size, values(layer.results, seed=seed)
