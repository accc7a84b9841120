"""Every benchmark runs once at tiny size without peers, so that none rots."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.case import Case, named
from benchmarks.cases import CASES
from benchmarks.contestants import Contestant
from benchmarks.convolutions import CHAINS, Chain, layer_constants
from benchmarks.convolutions import run as run_convolutions
from benchmarks.measure import interleaved, ratio
from benchmarks.products import PRODUCTS, constants
from benchmarks.products import run as run_products
from benchmarks.run import run_case
from benchmarks.stored_products import STORED_PRODUCTS, StoredProduct
from benchmarks.stored_products import run as run_stored_products
from tests.support.sources import ROOT


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_runs_and_agrees_with_numpy(case: Case) -> None:
    record = run_case(case, tiny=True, with_peers=False, rounds=1)
    assert record["contestants"]["ours"]["largest_error"] < 1e-5
    assert record["times_of_ours"]["limit"]["median"] > 0


def test_command_writes_json(tmp_path: Path) -> None:
    out = tmp_path / "cpu.json"
    command = [sys.executable, "-m", "benchmarks", "cpu", "--json", str(out), "--tiny", "--no-peers", "--rounds", "2"]
    subprocess.run([*command, "--case", "softmax"], cwd=ROOT, check=True, timeout=120, stdout=subprocess.DEVNULL)
    record = json.loads(out.read_text())
    assert list(record["cases"]) == ["softmax"]
    assert record["machine"]["versions"]["numpy"]


def test_products_run_and_agree_with_numpy() -> None:
    record = run_products(PRODUCTS[2:3], rounds=1, tiny=True)
    (product,) = [record[name] for name in record if name == PRODUCTS[2].name]
    assert 0 < product["share_of_peak"] < 1
    assert product["contestants"]["ours"]["median"] > 0
    assert product["times_of_ours"]["onnxruntime"]["median"] > 0


def test_copies_and_parts_have_weights_of_their_own() -> None:
    """Equal constants are kept once: copies of them would be one, which stays in a cache."""
    weights, others = (constants(PRODUCTS[0], copy)[0] for copy in range(2))
    assert not np.array_equal(weights, others)
    layer = CHAINS[0].layers[0]
    found = [layer_constants(layer, copy, part)[0] for copy, part in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert len({each.tobytes() for each in found}) == len(found)


@pytest.mark.parametrize("chain", CHAINS[::4], ids=[chain.name for chain in CHAINS[::4]])
def test_convolutions_run_and_agree_with_numpy(chain: Chain) -> None:
    record = run_convolutions([chain], rounds=1, tiny=True)
    assert record[chain.name]["gflops"] > 0


@pytest.mark.parametrize("product", STORED_PRODUCTS[:4], ids=lambda product: product.name)
def test_stored_products_run_and_agree_with_numpy(product: StoredProduct) -> None:
    record = run_stored_products([product], rounds=1, tiny=True)
    assert record[product.name]["share_of_bandwidth"] > 0
    assert record[product.name]["times_of_ours"]["onnxruntime"]["median"] > 0


def test_ratios_are_taken_round_by_round() -> None:
    times = {"a": [1.0, 10.0, 4.0], "b": [2.0, 20.0, 2.0]}
    spread = ratio(times, "b", "a")
    assert (spread.median, spread.low, spread.high) == (2.0, 0.5, 2.0)


def test_rounds_interleave() -> None:
    order: list[str] = []
    contestants = [Contestant(name, lambda name=name: order.append(name)) for name in "ab"]
    times = interleaved(contestants, rounds=2, batch_seconds=0.0)
    assert {name: len(values) for name, values in times.items()} == {"a": 2, "b": 2}
    assert [name for name, last in zip(order[4:], order[3:], strict=False) if name != last] == ["a", "b", "a"]


def test_unknown_case_is_named() -> None:
    with pytest.raises(ValueError, match="no benchmark sofmax"):
        named(CASES, ["sofmax"])
