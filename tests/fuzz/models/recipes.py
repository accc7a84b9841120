"""All recipes by operator, how often each is drawn, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from onnx import defs

from graphkernel.frontends.onnx.rule_table import rules
from tests.fuzz.models import elementwise, movement, networks, reductions
from tests.fuzz.models.elementwise import Make

RECIPES: Mapping[str, Make] = {
    **elementwise.RECIPES, **reductions.RECIPES, **movement.RECIPES, **networks.RECIPES
}  # fmt: skip

BODY = "its body is a graph of its own, which the importer refuses by name"
RANDOM = "its results are random by definition"
SEQUENCE = "sequences and optionals are no tensors; inputs and results of graphs are"
TEXT = "text is no data type here"
NEW = "onnxruntime does not know it, so there is no oracle"
LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(("If", "Loop", "Scan", "SequenceMap"), BODY),
    **dict.fromkeys((
        "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    ), RANDOM),
    **dict.fromkeys((
        "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct",
        "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence",
    ), SEQUENCE),
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"), TEXT),
    "ImageDecoder": "its operand is a file of a picture",
    **dict.fromkeys(("CausalConvWithState", "LinearAttention", "DeformConv"), NEW),
    "MaxUnpool": "its indices are the results of a MaxPool, and others are undefined",
}  # fmt: skip

OWN_WEIGHT, OTHER_WEIGHT = 10, 2


@cache
def drawable(opset: int) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The operators of an opset and their weights: those with a rule of their own most often."""
    names = tuple(sorted(name for name in RECIPES if _exists(name, opset)))
    return names, tuple(_weight(name) for name in names)


def _exists(name: str, opset: int) -> bool:
    return defs.has(name, opset, "") and not defs.get_schema(name, opset, "").deprecated


def _weight(name: str) -> float:
    return OWN_WEIGHT if name in rules() else OTHER_WEIGHT
