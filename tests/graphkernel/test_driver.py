from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
import kernelgen
from graphkernel import ops
from graphkernel.errors import FrontendError, OptionError, RuntimeFailure
from graphkernel.runtime.steps.host import NumpyHost
from graphkernel.runtime.steps.steps import KernelStep
from kernelgen.errors import UnsupportedError

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def twice(x: Any) -> Any:
    """Two equal kernels round a product of a library, and a third one."""
    first = ops.matmul(np.eye(x.shape[0], dtype=np.float32), ops.add(ops.mul(x, 2.0), 1.0))
    second = ops.matmul(np.eye(x.shape[0], dtype=np.float32), ops.add(ops.mul(first, 2.0), 1.0))
    return ops.exp(ops.neg(second))


GRAPH = gk.trace(twice, gk.spec((3, 4)))
(EXPECTED,) = gk.evaluate(GRAPH, [X])


def reference_compiler(desc: Any, target: str) -> Any:
    """A stand-in: the numpy meaning, written into ``out``."""
    meaning = kernelgen.reference(desc)

    def kernel(*inputs: np.ndarray, out: Any = None) -> Any:
        results = meaning(*inputs)
        for buffer, result in zip(out or results, results, strict=True):
            np.copyto(buffer, result)
        return results

    return kernel


def refusing_compiler(desc: Any, target: str) -> Any:
    """A stand-in that compiles no exponential."""
    if any(op.op.name == "Exp" for op in desc.operators):
        raise UnsupportedError("unsupported-op", "Exp is too hard")
    return reference_compiler(desc, target)


def faulty_compiler(desc: Any, target: str) -> Any:
    """A stand-in with a fault of its own: a table lacks the exponential."""
    known = {"Add": 1, "Mul": 1, "Neg": 1}
    assert all(known[op.op.name] for op in desc.operators)
    return reference_compiler(desc, target)


@pytest.mark.parametrize("compiler", [None, reference_compiler, refusing_compiler])
def test_any_compiler_gives_the_same_numbers(compiler: Any) -> None:
    exe = gk.compile(GRAPH, opt_level=2, compiler=compiler, host=NumpyHost())
    np.testing.assert_allclose(exe(X)[0], EXPECTED, rtol=1e-5)


def test_equal_kernels_are_compiled_once() -> None:
    made: list[str] = []

    def counting(desc: Any, target: str) -> Any:
        made.append(desc.name)
        return reference_compiler(desc, target)

    report = gk.compile(GRAPH, opt_level=2, compiler=counting).report
    assert len(made) == len(report.kernels) == 2
    assert sorted(len(kernel.calls) for kernel in report.kernels) == [1, 2]
    assert report.kernel_calls == 3


def test_kernels_that_differ_in_what_sizes_are_called_are_one() -> None:
    graph = gk.parse(
        """graph f(x: f32[N, M], y: f32[A, B], z: f32[K, K]) {
      p: f32[N, M] = Tanh(x)
      q: f32[A, B] = Tanh(y)
      r: f32[K, K] = Tanh(z)
      return p, q, r
    }"""
    )
    exe = gk.compile(graph)
    assert sorted(len(kernel.calls) for kernel in exe.report.kernels) == [1, 2]
    given = [np.full(shape, 0.5, np.float32) for shape in ((2, 3), (5, 4), (3, 3))]
    for found, x in zip(exe(*given), given, strict=True):
        np.testing.assert_allclose(found, np.tanh(x), rtol=1e-6)


def test_a_kernel_of_several_calls_is_told_the_sizes_of_each() -> None:
    graph = gk.parse(
        """graph f(x: f32[N*M + N + 1], y: f32[A*B + B + 1], n: f32[N], m: f32[M], a: f32[A], b: f32[B]) {
      p: f32[N*M + N + 1] = Tanh(x)
      q: f32[A*B + B + 1] = Tanh(y)
      return p, q
    }"""
    )
    exe = gk.compile(graph)
    assert [len(kernel.calls) for kernel in exe.report.kernels] == [2]
    assert [step.untold for step in exe.plan.steps if isinstance(step, KernelStep)] == [("M", "N"), ("A", "B")]
    given = [np.full(count, 0.5, np.float32) for count in (19, 9, 3, 5, 3, 2)]
    for found, x in zip(exe(*given), given[:2], strict=True):
        np.testing.assert_allclose(found, np.tanh(x), rtol=1e-6)


def test_kernels_that_differ_in_the_sign_of_zero_are_two() -> None:
    def net(x: Any, y: Any) -> Any:
        return ops.matmul(np.eye(3, dtype=np.float32), ops.mul(x, -0.0)), ops.mul(y, 0.0)

    exe = gk.compile(gk.trace(net, gk.spec((3, 4)), gk.spec((3, 4))), opt_level=1)
    assert (np.signbit(exe(*[np.ones((3, 4), np.float32)] * 2)[1]) == False).all()  # noqa: E712  # numpy booleans
    assert len(exe.report.kernels) == 2


def test_what_does_not_compile_runs_elsewhere_and_says_why() -> None:
    exe = gk.compile(GRAPH, opt_level=2, compiler=refusing_compiler)
    (found,) = exe.report.fallbacks
    assert (found.code, found.operator) == ("unsupported-op", "Neg, Exp")
    assert "Exp is too hard" in found.reason
    assert "disable_cluster_ops" in found.advice
    assert found.node in [entry for step in exe.report.host for entry in step.operators] or exe.report.host


def test_a_fault_of_the_compiler_is_seen_and_the_graph_still_runs(caplog: pytest.LogCaptureFixture) -> None:
    exe = gk.compile(GRAPH, opt_level=2, compiler=faulty_compiler)
    np.testing.assert_allclose(exe(X)[0], EXPECTED, rtol=1e-5)
    (found,) = exe.report.fallbacks
    assert (found.code, found.operator) == ("internal", "Neg, Exp")
    assert "KeyError: 'Exp'" in found.reason
    assert "a fault of this program" in found.reason
    for told in (found.trace, str(exe.report), json.loads(exe.report.to_json())["fallbacks"][0]["trace"], caplog.text):
        assert "in faulty_compiler" in told
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    with pytest.raises(RuntimeFailure, match="in faulty_compiler"):
        gk.compile(GRAPH, opt_level=2, compiler=faulty_compiler, strict=True)


def test_a_refusal_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    (found,) = gk.compile(GRAPH, opt_level=2, compiler=refusing_compiler).report.fallbacks
    assert (found.trace, caplog.records) == ("", [])


def test_kernels_behind_one_that_does_not_compile_stay_kernels() -> None:
    graph = gk.trace(
        lambda x: ops.neg(ops.matmul(np.eye(3, dtype=np.float32), ops.exp(x) + 1.0)) * 2.0, gk.spec((3, 4))
    )
    exe = gk.compile(graph, opt_level=2, compiler=refusing_compiler)
    assert (len(exe.report.fallbacks), exe.report.kernel_calls) == (1, 1)
    np.testing.assert_allclose(exe(X)[0], gk.evaluate(graph, [X])[0], rtol=1e-5)


def test_strict_raises_instead() -> None:
    with pytest.raises(RuntimeFailure, match=r"strict: .*Exp is too hard"):
        gk.compile(GRAPH, opt_level=2, compiler=refusing_compiler, strict=True)
    assert gk.compile(GRAPH, opt_level=2, strict=True).report.fallbacks == ()


def test_compiling_means_what_optimizing_means(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = gk.compile(gk.optimize(GRAPH)).report
    assert gk.compile(GRAPH).report.kernel_calls == fused.kernel_calls > 0
    assert (gk.compile(GRAPH).report.opt_level, fused.opt_level) == (2, None)
    assert gk.compile(GRAPH, flags="--opt_level=1").report.opt_level == 1
    monkeypatch.setenv("MS_DEV_GRAPH_KERNEL_FLAGS", "--opt_level=0")
    assert gk.compile(GRAPH).report.kernel_calls == 0


def test_unknown_hosts_are_named() -> None:
    with pytest.raises(OptionError, match="did you mean 'numpy'"):
        gk.compile(GRAPH, host="nunpy")


def test_numpy_is_the_host_of_graphs_without_library_operators() -> None:
    graph = gk.trace(lambda x: ops.add(ops.mul(x, 2.0), 1.0), gk.spec(4))
    assert gk.compile(graph).report.library == "numpy"
    assert gk.compile(GRAPH).report.library == "onnxruntime"
    assert gk.compile(GRAPH, host="numpy").report.library == "numpy"


def test_hooks_and_log_see_every_step() -> None:
    from graphkernel.decisions import DecisionLog

    seen: list[str] = []
    log = DecisionLog()
    gk.optimize(GRAPH, hooks=[lambda step, before, after: seen.append(step.pass_.name)], log=log)
    assert "graph_kernel_splitter" in seen
    assert len(log) > 0


@pytest.mark.parametrize("function", [gk.optimize, gk.compile, gk.explain])
def test_what_is_no_graph_is_refused_with_what_makes_one(function: Any) -> None:
    with pytest.raises(FrontendError, match=r"a Graph is needed, got function: gk.trace"):
        function(twice)


def test_the_report_tells_level_and_target_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_DEV_GRAPH_KERNEL_FLAGS", "--opt_level=0 --target=gpu")
    report = gk.compile(gk.trace(twice, gk.spec((4, 4))), opt_level=2).report
    assert (report.opt_level, report.target) == (0, "gpu")


def test_targets_that_do_not_exist_are_refused_at_once() -> None:
    with pytest.raises(OptionError, match="target"):
        gk.compile(gk.trace(twice, gk.spec((4, 4))), target="cup")


def test_flags_that_name_nothing_do_not_blame_the_pass() -> None:
    with pytest.raises(OptionError, match=r"^cannot expand 'Tanhh'"):
        gk.optimize(gk.trace(twice, gk.spec((4, 4))), flags="--enable_expand_ops=Tanhh")


def test_executables_print_in_one_line() -> None:
    assert str(gk.compile(gk.trace(twice, gk.spec((4, 4))), 2)).startswith("<Executable twice: ")
