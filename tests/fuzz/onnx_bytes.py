"""ONNX files that are nearly right: changed bytes, attributes of other types, odd shapes. Only documented errors."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

from onnx import AttributeProto, ModelProto, helper

import graphkernel as gk
from graphkernel.errors import GraphKernelError, PassError
from tests.fuzz.fuzzer import Fuzzer
from tests.fuzz.models.sample import draw as draw_model
from tests.fuzz.mutate import data, shorter
from tests.fuzz.outcome import PASSED, Kind, Outcome, internal

SOURCES = 2000  # models that are changed
ODD_ATTRIBUTES = (0, -1, 2**62, 0.5, float("nan"), "", "x", b"\xff\xfe", [0], [1, -1, 2**40], [0.5], ["a", "b"])


def draw(seed: int) -> bytes:
    """A model's bytes with changes in them, or the bytes of a model with changes."""
    random = Random(seed)
    model = draw_model(random.randrange(SOURCES)).model
    if random.random() < 0.5:
        return data(random, model.SerializeToString())
    for _ in range(random.choice((1, 1, 2, 4))):
        random.choice((_attribute, _attribute, _name, _extent, _element_type, _raw, _opset, _output))(random, model)
    return model.SerializeToString()


def _attribute(random: Random, model: ModelProto) -> None:
    """One that is there, or one that the operator may have, with a value of another kind."""
    node = random.choice(model.graph.node)
    names = [attribute.name for attribute in node.attribute] or ["axis", "axes", "to", "perm", "value", "alpha"]
    name = random.choice(names)
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    made = (
        helper.make_attribute(name, random.choice(ODD_ATTRIBUTES))
        if random.random() < 0.9
        else AttributeProto(name=name)
    )
    del node.attribute[:]
    node.attribute.extend([*kept, made])


def _name(random: Random, model: ModelProto) -> None:
    node = random.choice(model.graph.node)
    names = node.input if node.input and random.random() < 0.5 else node.output
    other = random.choice([info.name for info in model.graph.output] + ["", "nobody", "a b", "\n"])
    if names:
        names[random.randrange(len(names))] = other


def _extent(random: Random, model: ModelProto) -> None:
    for info in model.graph.input:
        for dim in info.type.tensor_type.shape.dim:
            if random.random() < 0.3:
                dim.dim_value = random.choice((-1, 0, 1, 2, 3, 2**31, 2**62))


def _element_type(random: Random, model: ModelProto) -> None:
    for info in (*model.graph.input, *model.graph.output):
        if random.random() < 0.5:
            info.type.tensor_type.elem_type = random.choice((0, 1, 7, 8, 9, 10, 14, 17, 22, 999))


def _raw(random: Random, model: ModelProto) -> None:
    for tensor in model.graph.initializer:
        if random.random() < 0.5:
            tensor.raw_data = tensor.raw_data[: random.randrange(len(tensor.raw_data) + 1)] + b"\x7f" * random.choice(
                (0, 8)
            )


def _opset(random: Random, model: ModelProto) -> None:
    model.opset_import[0].version = random.choice((0, 1, 6, 7, 12, 18, 30, 2**31, -5))


def _output(random: Random, model: ModelProto) -> None:
    if model.graph.output:
        model.graph.output[0].name = random.choice(("", "nobody", model.graph.output[-1].name))


def check(given: bytes, level: int) -> Outcome:
    """Loads and optimizes."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder, "model.onnx")
        place.write_bytes(given)
        return _checked(place, level)


def _checked(place: Path, level: int) -> Outcome:
    where = "load"
    try:
        graph = gk.load(place)
        where = "optimize"
        gk.optimize(graph, opt_level=level)
    except PassError as error:
        return internal(where, error.__cause__ or error)
    except GraphKernelError as error:
        return Outcome(Kind.REFUSED, f"{where}: {type(error).__name__}", str(error))
    except Exception as error:
        return internal(where, error)
    return PASSED


def smaller(given: bytes) -> Iterator[bytes]:
    """Whole nodes and initializers first, where the file can still be read."""
    try:
        model = ModelProto.FromString(given)
    except Exception:  # protobuf's own
        yield from shorter(given)
        return
    for field in ("node", "initializer", "input", "output"):
        for position in range(len(getattr(model.graph, field))):
            made = ModelProto()
            made.CopyFrom(model)
            del getattr(made.graph, field)[position]
            yield made.SerializeToString()


FUZZER = Fuzzer(draw, check, smaller, bytes.hex, bytes.fromhex, levels=True)
