"""GatherNd and TensorScatterAdd against loops: ids out of range read 0 and write nothing, repeated ids add up."""

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers


def ids_for(seed, outer, shape, depth):
    """Coordinates, about a fifth of them out of range on either side."""
    random = np.random.default_rng(seed)
    columns = [random.integers(-1, extent + 1, outer) for extent in shape[:depth]]
    return np.stack(columns, -1).astype(np.int32) if depth else np.zeros((*outer, 0), np.int32)


def is_inside(place, shape):
    return all(0 <= k < extent for k, extent in zip(place, shape, strict=False))


def gathered(data, ids):
    depth = ids.shape[-1]
    result = np.zeros((*ids.shape[:-1], *data.shape[depth:]), data.dtype)
    for outer in np.ndindex(ids.shape[:-1]):
        place = tuple(int(k) for k in ids[outer])
        if is_inside(place, data.shape):
            result[outer] = data[place]
    return result


def scattered(data, ids, updates):
    result = data.astype(np.float64)
    for outer in np.ndindex(ids.shape[:-1]):
        place = tuple(int(k) for k in ids[outer])
        if is_inside(place, data.shape):
            result[place] += updates[outer].astype(np.float64)
    return result.astype(data.dtype)


# data, outer dims of the ids, coordinates, data type
SIZES = [
    ((5,), (7,), 1, "float32"), ((3, 4), (6,), 2, "float32"), ((3, 4), (6,), 1, "float32"), ((1,), (1,), 1, "float32"),
    ((2, 3, 4), (5,), 3, "float32"), ((2, 3, 4), (2, 3), 2, "float32"), ((2, 3, 17), (4,), 1, "float32"),
    ((6, 5), (0,), 2, "float32"), ((7, 3), (20,), 1, "float64"), ((7, 3), (20,), 2, "int32"), ((7, 3), (9,), 1, "float16"),
    ((7, 3), (5,), 2, "bfloat16"), ((31, 2), (64,), 1, "float32"),
]  # fmt: skip


def cases():
    for number, (shape, outer, depth, kind) in enumerate(SIZES):
        data, ids = numbers(number, shape, kind), ids_for(number, outer, shape, depth)
        updates = numbers(number + 50, (*outer, *shape[depth:]), kind)
        loose = {"float16": 1e-2, "bfloat16": 0.1}.get(kind)
        yield Case("GatherNd", (data, ids), (gathered(data, ids),))
        yield Case("TensorScatterAdd", (data, ids, updates), (scattered(data, ids, updates),), tolerance=loose)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*cases()], ids=str)
def test_indexed(case, target):
    case.agrees(target)


@pytest.mark.parametrize("target", TARGETS)
def test_all_updates_on_one_element_add_up(target):
    ids, updates = np.full((100, 1), 2, np.int32), np.ones(100, np.float32)
    expected = np.asarray([0, 0, 100, 0], np.float32)
    Case("TensorScatterAdd", (np.zeros(4, np.float32), ids, updates), (expected,)).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_read_out_of_range(target):
    ids = np.asarray([[-1], [4], [2**31 - 1], [-(2**31)]], np.int32)
    Case("GatherNd", (np.ones(4, np.float32), ids), (np.zeros(4, np.float32),)).agrees(target)
