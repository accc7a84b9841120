"""An attribute that no rule asks for would be left out without a word: every one that a schema has is named, or here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx.defs
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state  # pyright: ignore[reportAttributeAccessIssue]

from graphkernel.frontends.onnx import rules as room
from graphkernel.frontends.onnx.rule_table import rules

FIRST_OPSET = 7
WITHOUT_EFFECT = {
    "round_mode": "of float8e8m0, which no kernel has",
    "saturate": "of float8, which no kernel has",
    "softmax_precision": "scores are float32 or wider",
    "qk_matmul_output_mode": "of a result that is declined",
    "storage_order": "of indices, which are declined",
    "num_outputs": "the results of a node are counted",
    "ratio": "of opset 7 to 11, without training",
    "momentum": "of training",
    "p": "of LpPool, which is declined",
    "rotary_embedding_dim": "the tables of angles are as wide",
    "mask_index_type": "of a result that is declined",
    "multi_class": "onnxruntime reads it nowhere",
    **dict.fromkeys(
        ("value_string", "value_strings", "sparse_value", "cats_strings", "classlabels_strings"), "of texts"
    ),
    **dict.fromkeys(
        ("nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "antialias"),
        "of images of another size, which are declined",
    ),
    **dict.fromkeys(("replaced_value_int64", "imputed_value_int64s"), "of integers, which are declined"),
    **dict.fromkeys(
        ("k_norm_epsilon", "q_norm_epsilon", "qk_norm_epsilon", "kv_cache_bit_width"), "of operands declined"
    ),
}


def schemas() -> Iterator[tuple[str, str]]:
    """Operators that have a rule, each with an attribute that the installed onnx or onnxruntime knows of it."""
    for name in rules():
        domain, _, op_type = name.rpartition("::")
        for version in range(FIRST_OPSET, onnx.defs.onnx_opset_version() + 1) if not domain else ():
            if onnx.defs.has(op_type, version, ""):
                yield from ((name, each) for each in onnx.defs.get_schema(op_type, version, "").attributes)
    state: Any = onnxruntime_pybind11_state
    for schema in state.get_all_operator_schema():
        if (name := f"{schema.domain}::{schema.name}") in rules():
            yield from ((name, each) for each in schema.attributes)


@pytest.fixture(scope="module")
def texts() -> str:
    (folder,) = room.__path__
    return "".join(path.read_text() for path in Path(folder).glob("*.py"))


def test_every_attribute_of_an_operator_with_a_rule_is_asked_for_or_has_no_effect(texts: str) -> None:
    forgotten = {(name, each) for name, each in schemas() if not re.search(rf'"{each}"|\b{each}=', texts)}
    assert {(name, each) for name, each in forgotten if each not in WITHOUT_EFFECT} == set()


def test_what_has_no_effect_is_known_to_a_schema() -> None:
    assert set(WITHOUT_EFFECT) <= {each for _, each in schemas()}
