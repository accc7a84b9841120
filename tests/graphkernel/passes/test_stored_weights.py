"""Products whose weights stay as narrow as the model has them: numbers beside float64, and what kernels are given."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.handoff import to_desc
from kernelgen.tensor.operators.matmul import STORED_MATMUL, weights_of
from kernelgen.verify import verify

INTEGERS = {
    "int8": (TensorProto.INT8, -128, 127), "uint8": (TensorProto.UINT8, 0, 255), "int4": (TensorProto.INT4, -8, 7),
    "uint4": (TensorProto.UINT4, 0, 15),
}  # fmt: skip


def compiled(model: onnx.ModelProto, folder: Path) -> gk.Executable:
    """On one thread, through a file."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    return gk.compile(gk.load(path), threads=1)


def model_of(
    nodes: list[onnx.NodeProto], constants: list[onnx.TensorProto], rows: int | str, terms: int
) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, terms])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], constants), opset_imports=domains, ir_version=10)


def node_of(op: str, operands: list[str], result: str, attributes: dict[str, int], domain: str = "") -> onnx.NodeProto:
    node = helper.make_node(op, operands, [result], domain=domain)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    return node


def stored_shapes(exe: gk.Executable) -> dict[str, int]:
    """The bytes of constants by data type."""
    found: dict[str, int] = {}
    for held in exe.program.constants:
        if held.array is not None:
            found[held.array.dtype.name] = found.get(held.array.dtype.name, 0) + held.array.nbytes
    return found


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * max(1.0, float(np.abs(expected).max())))


@settings(max_examples=12, deadline=None)
@given(
    rows=st.sampled_from([1, 2, 5, 8, 33, "N"]), groups=st.integers(1, 4), half=st.integers(4, 12),
    columns=st.sampled_from([16, 33, 40, 129]), kind=st.sampled_from(sorted(INTEGERS)), blocks=st.booleans(),
    turned=st.booleans(), with_zeros=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_dequantized_weights_stay_integers(
    tmp_path_factory, rows, groups, half, columns, kind, blocks, turned, with_zeros, seed
) -> None:
    random = np.random.default_rng(seed)
    terms = groups * 2 * half * 4
    number, low, high = INTEGERS[kind]
    integers = random.integers(low, high + 1, (terms, columns))
    each = groups if blocks else 1
    scales = (random.random((each, columns)) + 0.5).astype(np.float32)
    zeros = random.integers(low, high + 1, (each, columns)) * with_zeros
    wide = (integers.reshape(each, -1, columns) - zeros[:, None]) * scales[:, None].astype(np.float64)
    weights = wide.reshape(terms, columns)

    def laid(array: np.ndarray) -> np.ndarray:
        along = array if blocks or len(array) > 1 else array[0]
        return along.T if turned else along

    def integer(name: str, array: np.ndarray) -> onnx.TensorProto:
        return helper.make_tensor(name, number, array.shape, array.reshape(-1).tolist())

    constants = [
        integer("w", laid(integers)),
        numpy_helper.from_array(laid(scales), "scale"),
        integer("zero", laid(zeros)),
    ]
    along = {"axis": 1 if turned else 0, "block_size": terms // groups} if blocks else {"axis": 0 if turned else 1}
    nodes = [node_of("DequantizeLinear", ["w", "scale", "zero"], "v", along)]
    nodes += [helper.make_node("Transpose", ["v"], ["t"], perm=[1, 0])] if turned else []
    nodes += [helper.make_node("MatMul", ["x", "t" if turned else "v"], ["y"])]
    exe = compiled(model_of(nodes, constants, rows, terms), tmp_path_factory.mktemp("model"))
    assert not exe.report.host
    x = random.standard_normal((7 if rows == "N" else rows, terms)).astype(np.float32)
    assert_close(exe(x)[0], x.astype(np.float64) @ weights)
    shapes = stored_shapes(exe)
    kept = sum(
        shapes.get(each, 0) for each in ("uint8" if kind.endswith("4") else "int8", "int32")
    )  # or words of bytes
    assert 0 < kept < 2 * weights.size * (1 if kind.endswith("8") else 0.5)


@pytest.mark.parametrize("columns", [16, 48])
@pytest.mark.parametrize("rows", [9, 33])
def test_rows_that_fill_no_block_are_a_kernel(rows: int, columns: int, tmp_path: Path) -> None:
    """isl makes them an else branch of two conditions."""
    random, terms = np.random.default_rng(0), 64
    integers = random.integers(-128, 128, (terms, columns)).astype(np.int8)
    scales = random.random(columns).astype(np.float32)
    nodes = [
        node_of("DequantizeLinear", ["w", "scale"], "v", {"axis": 1}),
        helper.make_node("MatMul", ["x", "v"], ["y"]),
    ]
    held = [numpy_helper.from_array(integers, "w"), numpy_helper.from_array(scales, "scale")]
    exe = compiled(model_of(nodes, held, rows, terms), tmp_path)
    assert not exe.report.host
    x = random.standard_normal((rows, terms)).astype(np.float32)
    assert_close(exe(x)[0], x.astype(np.float64) @ (integers * scales.astype(np.float64)))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("with_zeros", [False, True])
@pytest.mark.parametrize("block", [16, 32, 128])
@pytest.mark.parametrize("rows", [1, 6])
def test_matmul_nbits_is_a_kernel(bits: int, with_zeros: bool, block: int, rows: int, tmp_path: Path) -> None:
    random, terms, columns = np.random.default_rng(0), 3 * block, 48
    groups, most = terms // block, 1 << bits
    integers = random.integers(0, most, (columns, groups, block)).astype(np.uint8)
    zeros = (
        random.integers(0, most, (columns, groups + 1)).astype(np.uint8)
        if with_zeros
        else np.full((columns, 4), most // 2)
    )
    scales = random.random((columns, groups)).astype(np.float32)

    def packed(rows: np.ndarray) -> np.ndarray:
        return rows if bits > 4 else (rows[..., ::2] | rows[..., 1::2] << 4).astype(np.uint8)

    given = {"w": packed(integers), "scale": scales.reshape(-1)}
    if with_zeros:
        given["zero"] = packed(zeros) if bits == 4 else zeros[:, :groups]
    sizes = {"K": terms, "N": columns, "bits": bits, "block_size": block}
    node = node_of("MatMulNBits", ["x", *given], "y", sizes, "com.microsoft")
    held = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in given.items()]
    exe = compiled(model_of([node], held, rows, terms), tmp_path)
    assert not exe.report.host
    wide = (integers.astype(np.float64) - zeros[:, :groups, None]) * scales[..., None]
    x = random.standard_normal((rows, terms)).astype(np.float32)
    assert_close(exe(x)[0], x.astype(np.float64) @ wide.reshape(columns, terms).T)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_float32_weights_of_sixteen_bits_are_stored_so_where_reading_them_takes_longest(kind: str) -> None:
    random = np.random.default_rng(0)
    weights = random.standard_normal((64, 48)).astype(np.dtype(getattr(ml_dtypes, kind, kind))).astype(np.float32)
    sizes: dict[int, dict[str, int]] = {}
    for rows in (1, 64):
        x = random.standard_normal((rows, 64)).astype(np.float32)
        exe = gk.compile(gk.trace(lambda x: gk.ops.matmul(x, weights), gk.spec(x.shape, "float32")), threads=1)
        assert_close(exe(x)[0], x.astype(np.float64) @ weights)
        sizes[rows] = stored_shapes(exe)
    assert sizes == {1: {kind: 2 * weights.size}, 64: {"float32": 4 * weights.size}}


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_products_of_halves_add_up_in_float32(kind: str) -> None:
    random, of = np.random.default_rng(0), np.dtype(getattr(ml_dtypes, kind, kind))
    x, weights = random.standard_normal((3, 2048)).astype(of), random.standard_normal((2048, 40)).astype(of)
    exe = gk.compile(gk.trace(lambda x: gk.ops.matmul(x, weights), gk.spec(x.shape, kind)), threads=1)
    assert not exe.report.host
    expected = x.astype(np.float64) @ weights.astype(np.float64)
    step = float(ml_dtypes.finfo(of).eps) * np.abs(expected).max()
    assert np.abs(np.asarray(exe(x)[0], np.float64) - expected).max() <= step


@pytest.mark.parametrize(("rows", "bits", "groups"), [(1, 0, 1), (3, 0, 4), (1, 4, 2), (9, 4, 1)])
def test_its_kernels_are_proved(rows: int, bits: int, groups: int) -> None:
    random = np.random.default_rng(0)
    stored = random.integers(0, 255, (groups, 16, 40)).astype(np.uint8)
    each = [random.random((groups, 40)).astype(np.float32) for _ in range(2)]

    def network(x):
        return gk.ops.tanh(gk.ops.apply(STORED_MATMUL, x, stored, *each, bits=bits, own_kernel=True))

    terms = weights_of(stored, *each, bits=bits).shape[0]
    fused = gk.optimize(gk.trace(network, gk.spec((rows, terms), "float32")))
    (node,) = fused.operators
    assert verify(to_desc(node, "cpu"), "cpu").status == "passed"
