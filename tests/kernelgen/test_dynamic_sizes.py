"""One kernel of each main class, compiled once from symbols, is right at 50 sizes; its proof is about parameters.

The sizes: 0, 1, primes, one past and one below a vector and a tile, odd tails, a few thousands; shapes that must be equal stay
equal. Results are compared with the reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from random import Random

import numpy as np
import pytest
from kernel_examples import Writer, column_sum, constant, softmax, tensor, transpose_add

from benchmarks.dynamic import CLASSES
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.enclosure import agree, enclose
from kernelgen.kernel import Kernel
from kernelgen.poly.proof.schedule_proof import Proof
from kernelgen.samples.inputs import draw
from kernelgen.targets.cpu.loops import streaming
from kernelgen.targets.cpu.runtime import entry
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.tensor.dims import sym

COUNT = 50
EXTENTS = (
    1,
    2,
    3,
    5,
    7,
    8,
    9,
    13,
    15,
    16,
    17,
    31,
    32,
    33,
    61,
    63,
    64,
    65,
    97,
    127,
    129,
    255,
    257,
    509,
    1023,
    2048,
    2049,
    4099,
)
MOST_ELEMENTS = 1 << 17
N, M, K = sym("N"), sym("M"), sym("K")


def matmul_add() -> KernelDesc:
    w = Writer()
    left, right = tensor("left", N, K), tensor("right", K, M)
    product = w.op("MatMul", left, right, shape=(N, M), transpose_a=False, transpose_b=False)
    return w.desc("matmul_add", (left, right), w.op("Add", product, constant(1.0), shape=(N, M)))


def batch_matmul() -> KernelDesc:
    w = Writer()
    left, right = tensor("left", sym("B"), N, K), tensor("right", sym("B"), M, K)
    product = w.op("BatchMatMul", left, right, shape=(sym("B"), N, M), transpose_a=False, transpose_b=True)
    return w.desc("batch_matmul", (left, right), product)


WRITTEN: Mapping[str, Callable[[], KernelDesc]] = {
    "written_softmax": lambda: softmax(N, M),
    "written_column_sum": lambda: column_sum(N, M),
    "matmul_add": matmul_add,
    "batch_matmul": batch_matmul,
}
NAMES = (*CLASSES, *WRITTEN)


def described(name: str) -> KernelDesc:
    return WRITTEN[name]() if name in WRITTEN else CLASSES[name].desc(name)


def sizes_of(symbols: tuple[str, ...], name: str) -> Iterator[dict[str, int]]:
    """Every symbol 1, then random ones; the product of all is limited."""
    random = Random(name)
    yield dict.fromkeys(symbols, 1)
    for _ in range(COUNT - 1):
        room, sizes = MOST_ELEMENTS, dict[str, int]()
        for symbol in random.sample(symbols, len(symbols)):
            sizes[symbol] = random.choice([extent for extent in EXTENTS if extent <= max(room, 1)])
            room //= sizes[symbol]
        yield sizes


def require_equal(kernel: Kernel, desc: KernelDesc, sizes: Mapping[str, int], seed: int) -> None:
    """The kernel's outputs and updated inputs lie where the roundings of these very numbers let them."""
    inputs = draw(desc, seed, sizes)
    updated = desc.updated_inputs
    given = [array.copy() if k in updated else array for k, array in enumerate(inputs)]
    names = [tensor.name for tensor in (*desc.outputs, *(desc.inputs[k] for k in updated))]
    apart = agree(names, [*kernel(*given), *(given[k] for k in updated)], enclose(desc, inputs))
    assert not apart.fault, f"{sizes}: {apart.fault}"


@pytest.mark.parametrize("name", NAMES)
def test_one_kernel_serves_all_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    right = entry.cached_library
    monkeypatch.setattr(entry, "cached_library", lambda source, *rest: loaded.append(source) or right(source, *rest))
    desc = described(name)
    kernel = compile(desc)
    distinct = list(sizes_of(desc.symbols, name))
    assert len(distinct) == COUNT
    for seed, sizes in enumerate(distinct):
        require_equal(kernel, desc, sizes, seed)
    assert loaded == [kernel.source]


@pytest.mark.parametrize("name", ["chain", "bias_gelu", "softmax", "column_sum", "full_sum", "transpose", "adam"])
def test_empty_arrays_give_what_the_reference_gives(name: str) -> None:
    desc = described(name)
    kernel = compile(desc)
    for symbol in desc.symbols:
        require_equal(kernel, desc, dict.fromkeys(desc.symbols, 5) | {symbol: 0}, 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_proof_is_about_all_sizes(name: str) -> None:
    kernel = compile(described(name), "python")
    assert isinstance(kernel.proof, Proof)
    assert {"bounds", "legality"} <= {fact.check for fact in kernel.proof.facts}
    assert re.search(r'domain: "\[n\w+', kernel.stages["mapped"]), "the schedule that was proved has parameters"
    assert set(kernel.nest.symbols) == set(kernel.desc.symbols)


STREAMED = [
    "chain",
    "bias_gelu",
    "layer_norm",
    "batch_norm",
    *(["transpose"] if detect_host().vector_bytes == 64 else []),
]
"""A transpose writes columns of tiles: past the caches only where one vector is a whole line."""


@pytest.mark.skipif(not detect_host().has_streaming, reason="this processor has no stores past the caches")
@pytest.mark.parametrize("name", STREAMED)
def test_streaming_is_decided_by_the_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With low limits both ways of storing run in these 50 calls: below 4 kB normal, above past the caches."""
    monkeypatch.setattr(streaming, "MIN_STREAMED_BYTES", 4 << 10)
    monkeypatch.setattr(streaming, "MIN_MOVED_BYTES", 4 << 10)
    desc = described(name)
    kernel = compile(desc)
    assert "!nontemporal" in kernel.source
    for seed, sizes in enumerate(sizes_of(desc.symbols, name)):
        require_equal(kernel, desc, sizes, seed)


def test_a_large_output_is_the_same_to_the_last_bit() -> None:
    """Beyond the limits, at odd rows: streamed and plain stores write the same numbers."""
    desc = CLASSES["chain"].desc("chain")
    x = np.random.default_rng(0).standard_normal((2049, 4099)).astype(np.float32)
    kernel = compile(desc)
    (large,) = kernel(x)
    (small,) = kernel(x[:3])
    np.testing.assert_array_equal(large, np.abs(x) * 2 + 1)
    np.testing.assert_array_equal(small, large[:3])


def test_transposes_of_all_sizes_run_in_tiles() -> None:
    kernel = compile(transpose_add(N, M))
    assert "interleave for" in kernel.stages["loops"]
    assert "shufflevector" in kernel.source
