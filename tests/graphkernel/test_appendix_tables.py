"""The default lists against the four tables in the appendices of MindSpore's page on custom fusion: they are the minimum."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphkernel.cluster.ops_lists import cluster_ops
from graphkernel.cluster.split_models import MODELS
from graphkernel.declarations import builtin_catalogue
from graphkernel.expanders.lists import expand_ops
from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.pipeline import steps_for
from tests.support.sources import FACTS

APPENDICES = ("expanders", "clusters", "fusion_passes", "fusion_patterns")
TARGETS = {"Ascend": "ascend", "CPU": "cpu", "GPU": "gpu"}
SPELLINGS = {"Argmin": "Argmin", "ArgMax": "Argmax"}  # the page's, where it is not the primitive's name
HIGHEST_LEVEL = 2


def table(number: int) -> list[tuple[str, ...]]:
    """The rows of an appendix, without heading."""
    lines = (FACTS / f"mindspore_{APPENDICES[number - 1]}.tsv").read_text().splitlines()
    return [tuple(line.split("\t")) for line in lines[1:]]


def cells(number: int) -> Iterator[tuple[str, str]]:
    """(operator, target) of every Y in appendix 1 or 2."""
    for name, *marks in table(number):
        for target, mark in zip(TARGETS.values(), marks, strict=True):
            if mark == "Y":
                yield SPELLINGS.get(name, name), target


def test_every_operator_of_appendix_1_is_declared_and_has_an_expander() -> None:
    names = [name for name, *_ in table(1)]
    assert not [name for name in names if name not in OPS]
    expanders = {entry.name for entry in builtin_catalogue().expanders}
    assert not [name for name in names if name not in expanders]
    print(f"appendix 1: {len(names)} operators, all with an expander")


def test_every_cell_of_appendix_1_is_in_the_default_list() -> None:
    marked = list(cells(1))
    assert not [(name, target) for name, target in marked if name not in expand_ops(target)]
    counts = {target: sum(on == target for _, on in marked) for target in TARGETS.values()}
    print(f"appendix 1: {len(marked)} cells, all in the default lists: {counts}")
    assert len(marked) > 100


def test_every_operator_of_appendix_2_is_declared() -> None:
    names = [SPELLINGS.get(name, name) for name, *_ in table(2)]
    assert not [name for name in names if name not in OPS]
    print(f"appendix 2: {len(names)} operators, all declared")


def test_every_cell_of_appendix_2_is_in_the_default_list() -> None:
    marked = list(cells(2))
    assert not [(name, target) for name, target in marked if name not in cluster_ops(target, HIGHEST_LEVEL)]
    counts = {target: sum(on == target for _, on in marked) for target in TARGETS.values()}
    print(f"appendix 2: {len(marked)} cells, all in the default lists: {counts}")
    assert len(marked) > 100


def test_every_pass_of_appendix_3_is_a_step_of_the_fusion_group() -> None:
    names = [name for name, _ in table(3)]
    steps = {step.pass_.name for step in steps_for(Options(target="ascend")) if step.stage == "fusion_group"}
    assert not [name for name in names if name not in steps]
    print(f"appendix 3: {len(names)} passes, all in the stage fusion_group")


def test_every_pattern_of_appendix_4_is_in_the_split_model_of_its_targets() -> None:
    rows = table(4)
    missing = [
        (name, target)
        for name, targets in rows
        for target in targets.split()
        if name not in MODELS[TARGETS[target]].patterns
    ]
    assert not missing
    print(f"appendix 4: {len(rows)} patterns, all in the split models")


def test_an_operator_that_is_taken_from_a_list_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.expand_ops", lambda target: expand_ops_without_square(target))
    with pytest.raises(AssertionError, match="Square"):
        test_every_cell_of_appendix_1_is_in_the_default_list()


ALL_OF = expand_ops


def expand_ops_without_square(target: str) -> frozenset[str]:
    """A list with a hole."""
    return ALL_OF(target) - {"Square"}
