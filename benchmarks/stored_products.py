"""Products of one row on one thread, by what weights are stored as: bytes of weights read in a second beside the memory's.

Every call takes the next of several copies of the weights, which together are larger than most caches. Ours, onnxruntime on
the same model and a read of as many bytes as all copies have take turns, by processor time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
from benchmarks.beside_peak import CACHE_BYTES, ORT
from benchmarks.contestants import OURS, Contestant
from benchmarks.machine import Read
from benchmarks.measure import Spread, on_one_thread, turning
from benchmarks.record import Record

Array = np.ndarray[Any, np.dtype[Any]]
MEMORY = "a read of all copies"
BLOCK = 32
SCALE_BYTES = 4
TINY = 64
GREATEST_ERROR = {OURS: 1e-5, ORT: 2e-2}
"""Onnxruntime rounds rows to eight bits in front of integers."""


@dataclass(frozen=True)
class StoredProduct:
    """One row of so many terms times weights that are ``storage``."""

    storage: str
    terms: int
    columns: int

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"1x{self.terms}x{self.columns} {self.storage}"

    @property
    def weight_bytes(self) -> int:
        """Of one copy, with the float32 scales: one for a column of int8, one for each block of int4."""
        bits = {"float32": 32, "float16": 16, "int8": 8, "int4": 4}[self.storage]
        scales = {"int8": self.columns, "int4": self.columns * self.terms // BLOCK}.get(self.storage, 0)
        return self.terms * self.columns * bits // 8 + SCALE_BYTES * scales


SIZES = ((768, 3072), (3072, 768), (512, 2048))
STORED_PRODUCTS = tuple(StoredProduct(kind, *size) for size in SIZES for kind in ("float32", "float16", "int8", "int4"))


def run(products: Sequence[StoredProduct], *, rounds: int, tiny: bool) -> Record:
    """Measures every product, small ones where that is asked for, and prints a table of them."""
    print(f"{'stored weights':24s}{'ours ms':>28s}{'GB/s':>8s}{'of memory':>11s}{'onnxruntime / ours':>26s}")
    found: Record = {}
    for product in products:
        each = replace(product, terms=TINY, columns=TINY) if tiny else product
        record = found[product.name] = _measured(each, rounds, tiny=tiny)
        against, mine = record["times_of_ours"].get(ORT), Spread(**record["contestants"][OURS])
        shown, rate = "-" if against is None else str(Spread(**against)), record["gigabytes_per_second"]
        print(f"{product.name:24s}{mine!s:>28s}{rate:8.1f}{record['share_of_bandwidth']:11.0%}{shown:>26s}")
    return found


def _measured(product: StoredProduct, rounds: int, *, tiny: bool) -> Record:
    copies = 2 if tiny else 1 + CACHE_BYTES // product.weight_bytes
    x = np.random.default_rng(0).standard_normal((1, product.terms)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        models = [_model(product, number) for number in range(copies)]
        contestants = [turning(OURS, [_ours(model, x, Path(folder)) for model, _ in models])]
        if find_spec("onnxruntime") is not None:
            contestants.append(turning(ORT, [_library(model, x) for model, _ in models]))
    contestants.append(Contestant(MEMORY, Read(copies * product.weight_bytes)))
    truth = x.astype(np.float64) @ models[0][1]
    record = on_one_thread(product.name, contestants, truth, GREATEST_ERROR, rounds, tiny=tiny)
    rate = product.weight_bytes / record["contestants"][OURS]["median"] / 1e6
    share = record["times_of_ours"][MEMORY]["median"] / copies
    return record | {"gigabytes_per_second": rate, "share_of_bandwidth": share}


def _ours(model: bytes, x: Array, folder: Path) -> Callable[[], Any]:
    path = folder / f"{len(list(folder.iterdir()))}.onnx"
    path.write_bytes(model)
    executable = gk.compile(gk.load(path), threads=1)
    return lambda: executable(x)


def _library(model: bytes, x: Array) -> Callable[[], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})


def _model(product: StoredProduct, seed: int) -> tuple[bytes, Array]:
    """The model, and the weights that it means in float64."""
    from onnx import TensorProto, helper, numpy_helper

    held, weights = _constants(product, np.random.default_rng(seed))
    sizes = {"K": product.terms, "N": product.columns, "bits": 4, "block_size": BLOCK}
    nodes = {
        "float32": [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "float16": [helper.make_node("Cast", ["w"], ["v"], to=TensorProto.FLOAT)],
        "int8": [helper.make_node("DequantizeLinear", ["w", "scales"], ["v"], axis=1)],
        "int4": [helper.make_node("MatMulNBits", ["x", "w", "scales"], ["y"], None, None, "com.microsoft", **sizes)],  # pyright: ignore[reportArgumentType]
    }[product.storage]
    if product.storage in ("float16", "int8"):
        nodes.append(helper.make_node("MatMul", ["x", "v"], ["y"]))
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n])
        for name, n in (("x", product.terms), ("y", product.columns))
    )
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(a, name) for name, a in held.items()])
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=10).SerializeToString(), weights


def _constants(product: StoredProduct, random: np.random.Generator) -> tuple[dict[str, Array], Array]:
    terms, columns = product.terms, product.columns
    if product.storage.startswith("float"):
        weights = random.standard_normal((terms, columns), np.float32).astype(product.storage)
        return {"w": weights}, weights.astype(np.float64)
    if product.storage == "int8":
        integers = random.integers(-128, 128, (terms, columns)).astype(np.int8)
        scales = random.random(columns, np.float32)
        return {"w": integers, "scales": scales}, integers * scales.astype(np.float64)
    groups = terms // BLOCK
    halves = random.integers(0, 16, (columns, groups, BLOCK)).astype(np.uint8)
    scales = random.random((columns, groups), np.float32)
    wide = (halves.astype(np.float64) - 8) * scales[..., None]
    packed = halves[..., ::2] | halves[..., 1::2] << 4
    return {"w": packed, "scales": scales.reshape(-1)}, wide.reshape(columns, terms).T
