"""Index inputs: in range but for the operators that bear more, row starts that fit the columns."""

import numpy as np
from kernel_examples import Writer, tensor

from kernelgen.samples.inputs import draw
from kernelgen.tensor.dtypes import INT32


def ids(name, *shape):
    return tensor(name, *shape, dtype=INT32)


def test_every_coordinate_has_its_own_range():
    w, data, places = Writer(), tensor("data", 100, 3), ids("ids", 4000, 2)
    found = draw(w.desc("k", (data, places), w.op("GatherNd", data, places, shape=(4000,))))[1]
    assert (found.min(0).tolist(), found.max(0).tolist()) == ([-10, -1], [109, 3])


def test_coordinates_that_are_computed_fit_the_shortest_dim():
    w, data, raw = Writer(), tensor("data", 100, 3), tensor("raw", 4000, 2)
    places = w.op("Cast", raw, shape=(4000, 2), dtype=INT32)
    found = draw(w.desc("k", (data, raw), w.op("GatherNd", data, places, shape=(4000,))))[1]
    assert (found.min(), found.max()) == (-1, 3)


def test_an_input_of_two_readers_fits_both():
    w, long, short, places = Writer(), tensor("long", 90), tensor("short", 7), ids("ids", 500)
    outputs = w.op("Gather", long, places, shape=(500,)), w.op("Gather", short, places, shape=(500,))
    found = draw(w.desc("k", (long, short, places), *outputs))[2]
    assert set(np.unique(found)) == set(range(7))


def test_sparse_matrices_are_consistent():
    w, dense = Writer(), tensor("dense", 9, 4)
    starts, columns, values = ids("starts", 6), ids("columns", 40), tensor("values", 40)
    y = w.op("CSRMM", starts, columns, values, dense, shape=(5, 4), dtype=values.dtype, dense_shape=(5, 9))
    found = draw(w.desc("k", (starts, columns, values, dense), y))
    assert (found[0][0], found[0][-1]) == (0, 40)
    assert (np.diff(found[0]) >= 0).all()
    assert (found[1].min(), found[1].max()) == (0, 8)


def test_row_numbers_are_sorted():
    w, rows = Writer(), ids("rows", 60)
    (found,) = draw(w.desc("k", (rows,), w.op("COO2CSR", rows, shape=(8,), height=7)))
    assert (np.diff(found) >= 0).all()
    assert 0 <= found.min() <= found.max() <= 6


def test_sizes_and_numbers_can_be_given():
    w, data, places = Writer(), tensor("data", 5), ids("ids", 3)
    desc = w.desc("k", (data, places), w.op("Gather", data, places, shape=(3,)))
    found = draw(desc, numbers=lambda kind, shape, random: np.full(shape, 7, kind.numpy))
    assert found[0].tolist() == [7] * 5
    assert 0 <= found[1].min() <= found[1].max() <= 4
