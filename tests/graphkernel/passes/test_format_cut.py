"""The choice of formats against trying all of them."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from graphkernel import ops
from graphkernel.ops import Tensor
from graphkernel.passes.format.format_cut import best_formats, transforms_of
from graphkernel.passes.format.format_kinds import TransposeKind
from graphkernel.passes.format.format_regions import find_regions
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import TensorType, dtype

KIND = TransposeKind()
SHAPES = ((3, 4), (3, 4), (4, 3), (4, 3))


@st.composite
def nets(draw: st.DrawFn) -> Graph:
    """Up to nine operators on matrices of either format, which are used as they are or transposed."""
    builder = Builder()
    inputs = [builder.parameter(f"x{i}", TensorType(shape, dtype("float32"))) for i, shape in enumerate(SHAPES)]
    values = [Tensor(value, builder) for value in inputs]
    for _ in range(draw(st.integers(1, 9))):
        x, y = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        if draw(st.booleans()):
            x = x.T
        if draw(st.booleans()):
            values.append(ops.exp(x))
        else:
            values.append(x + (y if x.shape == y.shape else y.T))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return Graph("random", tuple(inputs), tuple(draw(st.sampled_from((x, x.T))).value for x in outputs))


@settings(max_examples=200)
@given(graph=nets())
def test_no_choice_needs_fewer_transforms(graph: Graph) -> None:
    found = find_regions(graph, KIND)
    for region in found.regions:
        formats = tuple(dict.fromkeys(found.format[value] for value in found.format))
        fixed = {value: found.format[value] for value in region.readers}
        fewest = min(
            transforms_of(region, KIND, found.format, {**fixed, **dict(zip(region.free, choice, strict=True))})
            for choice in product(formats, repeat=len(region.free))
        )
        best = best_formats(region, KIND, found.format)
        assert transforms_of(region, KIND, found.format, best) == fewest
        assert transforms_of(region, KIND, found.format, fixed) <= len(region.transforms)
