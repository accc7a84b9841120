import kernel_examples as examples
import pytest

from kernelgen.composite.bind_sizes import bind
from kernelgen.composite.specialize import specialize
from kernelgen.errors import ArgumentError
from kernelgen.tensor.dims import sym


def test_symbols_are_bound_from_shapes():
    assert bind(examples.softmax(sym("R"), sym("C")), [(4, 5)]) == {"R": 4, "C": 5}


def test_sizes_that_contradict_each_other_are_refused():
    desc = examples.split_reshape(sym("N"))
    assert bind(desc, [(12, 6), (3, 1, 2, 3)]) == {"N": 3}
    with pytest.raises(ArgumentError, match="q has shape"):
        bind(desc, [(12, 6), (4, 1, 2, 3)])


def test_sums_and_products_are_told_by_later_shapes():
    rows, columns = sym("R"), sym("C")
    w, total, many, x = (
        examples.Writer(), examples.tensor("total", rows + columns), examples.tensor("many", rows * columns),
        examples.tensor("x", columns),
    )  # fmt: skip
    desc = w.desc("k", (total, many, x), w.op("Neg", x, shape=x.shape))
    assert bind(desc, [(7,), (12,), (4,)]) == {"R": 3, "C": 4}
    with pytest.raises(ArgumentError, match="many has shape"):
        bind(desc, [(7,), (11,), (4,)])


def test_a_symbol_that_no_input_tells_is_refused():
    w, x = examples.Writer(), examples.tensor("x", sym("R") * sym("C"))
    with pytest.raises(ArgumentError, match="do not tell C, R"):
        bind(w.desc("k", (x,), w.op("Neg", x, shape=x.shape)), [(12,)])


def test_wrong_ranks_are_refused():
    with pytest.raises(ArgumentError, match="rank 1"):
        bind(examples.softmax(), [(6,)])


def test_specialised_descriptions_hold_numbers_only():
    w, x = examples.Writer(), examples.tensor("x", sym("N"))
    desc = w.desc("k", (x,), w.op("BroadcastTo", x, shape=(3, sym("N")), sizes=(3, sym("N"))))
    fixed = specialize(desc, {"N": 7})
    assert not fixed.symbols
    assert fixed.operators[0].attrs["sizes"] == (3, 7)
    assert specialize(fixed, {}) is fixed
