"""Products with constant weights on one thread: ours beside onnxruntime's, and the share of the processor's peak.

Every call takes the next of several copies of the weights, which together are larger than most caches: so a network meets
its weights. All contestants and the peak are of one run, by processor time: all of them run on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

import graphkernel as gk
from benchmarks.beside_peak import ORT, beside_peak, values
from benchmarks.contestants import OURS, Contestant
from benchmarks.measure import turning
from benchmarks.record import Record
from kernelgen.tensor.operators.elemwise import erf


@dataclass(frozen=True)
class Product:
    """Rows by terms times terms by columns, a bias on every row, and gelu behind it where that is asked for."""

    rows: int
    terms: int
    columns: int
    gelu: bool = False

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.rows}x{self.terms}x{self.columns}" + (" gelu" if self.gelu else "")

    @property
    def operations(self) -> int:
        """Multiplications and additions of the product."""
        return 2 * self.rows * self.terms * self.columns

    @property
    def tiny(self) -> Product:
        """One of the same kind that takes no time."""
        return replace(self, rows=min(self.rows, TINY[1]), terms=TINY[0], columns=TINY[0])

    @property
    def weight_bytes(self) -> int:
        """Of one copy."""
        return 4 * self.terms * self.columns


PRODUCTS = (
    Product(128, 768, 768),
    Product(128, 768, 2304),
    Product(128, 768, 3072, gelu=True),
    Product(128, 3072, 768),
    Product(197, 768, 2304),
    Product(197, 3072, 768),
    Product(1500, 384, 1536, gelu=True),
    Product(64, 768, 2304),
    Product(16, 768, 3072),
    Product(8, 768, 3072),
    Product(1, 768, 3072),
    Product(3136, 256, 64),
    Product(784, 512, 128),
    Product(784, 512, 256),
    Product(196, 1024, 256),
    Product(196, 256, 1024),
    Product(49, 2048, 512),
    Product(49, 512, 2048),
)
"""Of encoders, patch transformers, an audio encoder and decoders; the last ones are convolutions of 1 x 1 windows in residual
networks, whose rows are the places of an image.
"""

TINY = 16, 5
"""At most so many terms and columns, and rows, keep a benchmark alive in a test."""


def run(products: Sequence[Product], *, rounds: int, tiny: bool) -> Record:
    """Measures every product, the ``tiny`` one of its kind where that is asked for, and prints a table of them."""
    found = beside_peak("product", products, _contestants, _truth, rounds, tiny=tiny)
    for product in products:
        record = found[product.name]
        weight_bytes = (product.tiny if tiny else product).weight_bytes
        milliseconds = record["contestants"][OURS]["median"]
        record["weights_gigabytes_per_second"] = weight_bytes / milliseconds / 1e6
    return found


def _contestants(product: Product, copies: int) -> Iterator[Contestant]:
    """Each turns through its copies; an answer is that of the first."""
    x = values(product.rows, product.terms)
    makers: dict[str, Callable[[np.ndarray, np.ndarray], Callable[[], Any]]] = {
        OURS: lambda weights, bias: _ours(product, x, weights, bias)
    }
    if find_spec("onnxruntime") is not None:
        makers[ORT] = lambda weights, bias: _library(product, x, weights, bias)
    for name, make in makers.items():
        yield turning(name, [make(*constants(product, copy)) for copy in range(copies)])


def _ours(product: Product, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Callable[[], Any]:
    def network(x: Any) -> Any:  # a traced tensor
        y = gk.ops.matmul(x, weights) + bias
        return y * (gk.ops.erf(y * np.float32(0.5**0.5)) + np.float32(1)) * np.float32(0.5) if product.gelu else y

    executable = gk.compile(gk.trace(network, gk.spec(x.shape, "float32")), threads=1)
    out = np.empty((product.rows, product.columns), np.float32)
    return lambda: executable(x, out=(out,))


def _library(product: Product, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Callable[[], Any]:
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    held = {
        "weights": weights,
        "bias": bias,
        "root": np.float32(0.5**0.5),
        "one": np.float32(1),
        "half": np.float32(0.5),
    }
    nodes = [("MatMul", "x", "weights", "y0"), ("Add", "y0", "bias", "y")]
    if product.gelu:
        nodes += [("Mul", "y", "root", "s"), ("Erf", "s", "e"), ("Add", "e", "one", "f"), ("Mul", "y", "f", "g")]
        nodes += [("Mul", "g", "half", "h")]
    read = {name for _, *names in nodes for name in names}
    made = [helper.make_node(op, list(inputs), [result]) for op, *inputs, result in nodes]
    graph = helper.make_graph(
        made, "product",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, list(x.shape))],
        [helper.make_tensor_value_info(nodes[-1][-1], onnx.TensorProto.FLOAT, [product.rows, product.columns])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items() if name in read],
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})


def constants(product: Product, copy: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of each ``copy``'s own: equal ones would lie in memory once."""
    return values(product.terms, product.columns, seed=copy), values(product.columns, seed=copy)


def _truth(product: Product) -> np.ndarray:
    x, (weights, bias) = values(product.rows, product.terms), constants(product, 0)
    y = x.astype(np.float64) @ weights + bias
    return y * (erf(y * 0.5**0.5) + 1) * 0.5 if product.gelu else y
