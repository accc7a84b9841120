"""parse(show(g)) == g for graphs of every data type, odd names, odd numbers and symbolic shapes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkernel.ops import OPS
from kernelgen.tensor.compare import difference
from kernelgen.tensor.dtypes import DTYPES
from kernelgen.tensor.graph import Alias, Builder, Graph, Value
from kernelgen.tensor.literals import attribute_text, element_text, parse_element
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.text import parse, show
from kernelgen.tensor.types import Attrs, Category, TensorType, sym

SPELLED = [d for d in DTYPES if d.category is not Category.COMPLEX]
NAMES = st.one_of(
    st.from_regex(r"\A[a-z_][a-z0-9_.]{0,5}\Z"), st.text(max_size=6), st.sampled_from(["inf", "nan", "return", "t0"])
)
EXTENTS = st.sampled_from([0, 1, 2, 3, 5, sym("N"), sym("M") * 2, sym("N") * sym("M") + 1, sym("N") - 1])
ATTRIBUTES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
        st.sampled_from([sym("N"), sym("N") * 2 - 1, sym("a") * sym("b") + 3, -sym("N") + 4]),
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)  # fmt: skip


def _any(types, attrs):
    return types[:1] * 2


ANY = Operator("Any", Kind.OPAQUE, None, _any, lambda *arrays, attrs: arrays[0])
TEST_OPS = {**OPS, "Any": ANY}


@st.composite
def elements(draw, of=None):
    """A data type and the bytes of one of its elements: every bit pattern is met."""
    d = of or draw(st.sampled_from(SPELLED))
    if d.name == "bool":
        return d, np.asarray(draw(st.booleans()))
    bits = draw(st.integers(0, 2**d.bits - 1))
    return d, np.asarray(bits, f"u{d.itemsize}").view(d.numpy)


@given(elements())
@settings(max_examples=300, deadline=None)
def test_every_bit_pattern_of_every_data_type_reads_back(element):
    d, value = element
    back = parse_element(element_text(value, d), d)
    assert back.dtype == d.numpy
    assert back.tobytes() == value.tobytes()


@st.composite
def graphs(draw, depth=1):
    builder = Builder()
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    values: list[Value] = []
    for name in names:
        type_ = TensorType(
            tuple(draw(st.lists(EXTENTS, max_size=3))),
            draw(st.sampled_from(DTYPES)),
            draw(st.sampled_from(["DefaultFormat", "NHWC"])),
        )
        values.append(builder.parameter(name, type_))
    inputs = tuple(values)
    for _ in range(draw(st.integers(0, 4))):
        choice = draw(st.integers(0, 3 if depth else 2))
        if choice == 0:
            _, value = draw(elements())
            count = draw(st.sampled_from([None, 0, 1, 5, 40]))
            values.append(builder.constant(value if count is None else np.repeat(value, count)))
        elif choice <= 2:
            operands = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
            attrs = Attrs.of(draw(st.dictionaries(st.from_regex(r"\A[a-z]{1,4}\Z"), ATTRIBUTES, max_size=2)))
            values.extend(builder.node(ANY, operands, attrs, draw(NAMES)).outs)
        else:
            body = draw(graphs(depth=0))
            fitting = [[v for v in values if v.type == inner.type] for inner in body.inputs]
            if all(fitting):
                values.extend(builder.fused(body, [draw(st.sampled_from(options)) for options in fitting]).outs)
    outputs = tuple(draw(st.lists(st.sampled_from(values), max_size=4)))
    aliases = tuple(Alias(0, i) for i in range(len(inputs)) if outputs and outputs[0].type == inputs[i].type)[:1]
    return Graph(draw(NAMES), inputs, outputs, aliases)


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_text_reads_back(graph):
    text = show(graph)
    back = parse(text, TEST_OPS)
    assert difference(graph, back) is None, text
    assert show(back) == text


@given(ATTRIBUTES)
def test_attribute_text_is_injective_on_what_repr_tells_apart(value):
    assert attribute_text(value) == attribute_text(Attrs.of(a=value)["a"])
