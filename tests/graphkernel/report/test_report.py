from __future__ import annotations

import json
from typing import Any

import numpy as np
from onnx import helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.report.page.counted import size_text
from graphkernel.report.page.html import section, table
from tests.support.onnx_models import model


def net(x: Any, w: Any) -> Any:
    return ops.relu(ops.matmul(ops.add(ops.mul(x, 2.0), 1.0), w))


REPORT = gk.compile(gk.trace(net, gk.spec(("N", 4)), gk.spec((4, 4))), opt_level=2).report


def test_bytes_are_those_of_operands_and_results() -> None:
    fused = next(kernel for kernel in REPORT.kernels if kernel.operators == ("Mul", "Add"))
    assert str(fused.bytes_moved) == "32*N"  # x and the sum
    assert str(fused.bytes_unfused) == "64*N"  # and the product, written and read
    assert fused.inputs == fused.outputs == ("f32[N, 4]",)


def test_forms_tell_the_same() -> None:
    data = json.loads(REPORT.to_json())
    assert data["schema"] == 1
    assert [kernel["name"] for kernel in data["kernels"]] == [kernel.name for kernel in REPORT.kernels]
    assert data["kernels"][0]["bytes_moved"] == str(REPORT.kernels[0].bytes_moved)
    assert all(kernel.name in str(REPORT) and kernel.name in REPORT.to_html() for kernel in REPORT.kernels)
    assert REPORT.summary.startswith("net: 4 operators became 2 kernel calls (2 distinct, ")
    assert "and 1 host step, 0 fallbacks" in REPORT.summary


def test_proof_is_in_the_report() -> None:
    assert all("bounds" in kernel.proof for kernel in REPORT.kernels)


def test_html_escapes_what_comes_from_models() -> None:
    text = section("<b>", [table("t", ("a",), [("<script>",)]), table("none", ("a",), [])])
    assert (
        text
        == "<div><p>&lt;b&gt;</p><h4>t</h4><table><tr><th>a</th></tr><tr><td>&lt;script&gt;</td></tr></table></div>"
    )


def test_sizes_read_as_people_write_them() -> None:
    assert [size_text(size) for size in (0, 1023, 1536, 3 << 20, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "3.0 MiB",
        "5.0 GiB",
    ]
    assert size_text(gk.spec(("N", 4)).size) == "4*N B"


def test_level_zero_has_no_kernels() -> None:
    report = gk.compile(gk.trace(net, gk.spec((2, 4)), gk.spec((4, 4))), opt_level=0).report
    assert report.kernels == ()
    assert report.opt_level == 0
    assert sum(len(entry.operators) for entry in report.host) == 4
    assert np.prod([len(entry.operators) for entry in report.host]) == 4  # in one region


def test_operators_are_those_of_the_model() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="first"),
        helper.make_node("LayerNormalization", ["c", "g"], ["n"], name="second"),
        helper.make_node("Relu", ["n"], ["y"], name="third"),
    ]
    shapes = {"x": (2, 3, 8, 8), "w": (4, 3, 3, 3), "b": (4,), "g": (6,)}
    x, *weights = (np.ones(shape, np.float32) for shape in shapes.values())
    graph = import_onnx(model(nodes, {"x": x}, constants=dict(zip("wbg", weights, strict=True))))
    assert len(graph.operators) > 3
    executable = gk.compile(graph)
    assert executable.report.summary.startswith(f"{graph.name}: 3 operators became ")
    assert "3 operators became" in executable.report.to_html()
    assert "3 operators became" in gk.explain(graph).summary
    fused = gk.optimize(gk.trace(net, gk.spec(("N", 4)), gk.spec((4, 4))))
    assert gk.compile(fused).report.operators == 4
