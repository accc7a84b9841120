"""Imports stay light: heavy libraries load when they are needed, not before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelgen.native import mapped

HEAVY = ("torch", "onnx", "onnxruntime", "cupy", "llvmlite", "islpy", "pandas", "jax")
OPTIMIZE = """
import graphkernel as gk
from graphkernel import ops
graph = gk.trace(lambda x: ops.add(ops.mul(x, 2.0), 1.0), gk.spec((4, 4), "float32"))
assert gk.optimize(graph, opt_level=2) is not graph
"""


# All of ours that running a package loads, with kernels, a parallel loop and a region: each costs every process some time.
RUNNING = {
    "kernelgen": (
        "composite composite.bind_sizes errors native native.call native.code native.entry native.library "
        "native.mapped native.processor native.records native.session native.signature native.table native.team "
        "native.wrapper options system system.bounded_io system.cached_property system.cores "
        "system.digest system.escape system.files "
        "system.json_parts system.limits system.mapped system.meanwhile system.named_tuples system.notices "
        "tensor tensor.attrs tensor.bind "
        "tensor.boxes tensor.derived tensor.dims tensor.dtypes tensor.elements tensor.names tensor.types "
    ),
    "graphkernel": (
        "errors packages packages.assemble packages.begun packages.container packages.lent packages.loaded packages.manifest "
        "packages.programs packages.read "
        "packages.tensors "
        "runtime runtime.executable runtime.failures runtime.inputs runtime.inputs.arrays runtime.inputs.named_inputs "
        "runtime.inputs.torch_tensors runtime.invocation runtime.memory runtime.onnxruntime "
        "runtime.onnxruntime.c_interface runtime.onnxruntime.environment runtime.onnxruntime.region_step "
        "runtime.onnxruntime.sessions runtime.plan "
        "runtime.plan.buffers runtime.steps runtime.steps.program runtime.steps.steps runtime.tables "
        "runtime.tables.bind_table runtime.tables.native_run runtime.tables.results runtime.tables.session_call "
        "runtime.tables.slot_facts runtime.tables.watch system "
        "system.environment "
        "system.freed_memory system.numpy_threads system.paths "
    ),
}
UNNEEDED = (
    "dataclasses",
    "hashlib",
    "logging",
    "ml_dtypes",
    "networkx",
    "onnxruntime",
    "pathlib",
    "pkgutil",
    "pydantic",
    "zipfile",
)
"""What running needs neither; some takes as long to load as all of the above."""
PACK = """
import sys, numpy as np, graphkernel as gk
from graphkernel import ops
weight = np.ones((512, 16), np.float32)
graph = gk.trace(lambda x: ops.matmul(ops.exp(x) + 1.0, weight), gk.spec((2000, 512), "float32"))
gk.compile(graph, flags=sys.argv[2]).save(sys.argv[1])
"""
RUN = """
import sys, numpy as np, graphkernel as gk
gk.load_compiled(sys.argv[1])(np.ones((2000, 512), np.float32))
print(*sys.modules)
"""
FOUND = '''
import sys, graphkernel as gk
gk.compile(gk.parse("""graph found(x: f32[N]) {
  i: i64[1, u0] = Onnx(x, op_type="NonZero", opset=17, result_types=("i64[1, u0]",), defines=("u0",))
  s: i64[2] = Shape(i)
  return s }""")).save(sys.argv[1])
'''
RUN_FOUND = """
import sys, numpy as np, graphkernel as gk
(shape,) = gk.load_compiled(sys.argv[1])(np.array([1, 0, 2], np.float32))
assert shape.tolist() == [1, 2]
print(*sys.modules)
"""
BEGUN = """
import sys, graphkernel as gk
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("json", "numpy._core"):
            from graphkernel.runtime.onnxruntime import environment
            print(len(environment._BEGUN), "environment begun")
sys.meta_path.insert(0, Watch())
gk.load_compiled(sys.argv[1])
"""


def ran(program: str, *arguments: str) -> str:
    """What a program prints in a fresh process."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def loaded_after(program: str) -> set[str]:
    """The heavy libraries in memory after a program ran in a fresh process."""
    return set(ran(f"{program}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])").split())


@pytest.mark.parametrize("package", ["graphkernel", "graphkernel.ops", "kernelgen", "kernelgen.nest.nodes"])
def test_import_is_light(package: str) -> None:
    assert loaded_after(f"import {package}") == set()


def test_optimizing_needs_no_code_generator() -> None:
    assert loaded_after(OPTIMIZE) == set()


def test_compiling_for_a_processor_needs_no_graph_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    program = OPTIMIZE.replace(
        "assert", "import sys\ngk.compile(graph)\nassert 'islpy' in sys.modules, 'compiled'\nassert"
    )
    assert "networkx" not in ran(f"{program}\nprint(*sys.modules)").split()


def test_the_probe_sees_a_heavy_import() -> None:
    assert loaded_after("import llvmlite") == {"llvmlite"}


@pytest.mark.skipif(not mapped.is_supported(), reason="packages are made on x86-64 Linux")
def test_running_a_package_loads_what_it_needs(tmp_path: Path) -> None:
    package = str(tmp_path / "net.gkx")
    ran(PACK, package, "")
    loaded = ran(RUN, package).split()
    assert [name for name in UNNEEDED if name in loaded] == []
    for ours, names in RUNNING.items():
        assert sorted(name.removeprefix(f"{ours}.") for name in loaded if name.startswith(f"{ours}.")) == sorted(
            names.split()
        )


@pytest.mark.skipif(not mapped.is_supported(), reason="packages are made on x86-64 Linux")
def test_the_library_of_regions_loads_beside_the_rest(tmp_path: Path) -> None:
    """It takes as long as half of numpy, and none of Python's lock: who waits for both one after the other waits longer.

    It begins before a package is read as well: threads that numpy's own library starts take a processor from it.
    """
    package = str(tmp_path / "net.gkx")
    ran(PACK, package, "--disable_cluster_ops=MatMul")
    assert ran(BEGUN, package).splitlines() == ["1 environment begun"] * 2


@pytest.mark.skipif(not mapped.is_supported(), reason="packages are made on x86-64 Linux")
def test_the_extents_of_a_result_are_read_without_operators(tmp_path: Path) -> None:
    package = str(tmp_path / "found.gkx")
    ran(FOUND, package)
    assert [name for name in ran(RUN_FOUND, package).split() if name.endswith((".operator", "dataclasses"))] == []
