"""Rules of the house that can be read off a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.sources import PACKAGES, Source, sources

ENVIRONMENT_READERS = {
    "graphkernel/system/environment.py",
    "graphkernel/system/numpy_threads.py",  # what it says is for OpenBLAS, while that is loaded
    "kernelgen/options.py",
}
ENVIRONMENT_NAMES = {"environ", "environb", "getenv"}

# Own modules may be imported inside a function only where this keeps a heavy library out of a light import.
LAZY_IMPORTS = {
    "graphkernel/report/report.py": "a page brings its template, which no program needs that only runs",
    "graphkernel/recall.py": "what was compiled before needs no optimizer",
    "graphkernel/packages/container.py": "a package is opened while numpy loads",
    "graphkernel/packages/lent.py": "weights in a file stay where they lie",
    "graphkernel/packages/read.py": "onnxruntime's library loads while all that follows is imported",
    "graphkernel/packages/loaded.py": "what runs needs neither graph nor report nor the writer of packages",
    "graphkernel/packages/nodes.py": "kernels and regions need no operators",
    "graphkernel/packages/programs.py": "few programs speak to other processes",
    "graphkernel/runtime/steps/program.py": "few programs speak to other processes",
    "graphkernel/runtime/steps/steps.py": "few programs compute rows for other processes",
    "graphkernel/runtime/failures.py": "only who tells of a failed operator needs operators",
    "graphkernel/runtime/onnxruntime/c_interface.py": "onnxruntime is loaded while numpy loads",
    "graphkernel/runtime/onnxruntime/sessions.py": "most processes have nothing to tell",
    "graphkernel/handoff.py": "only who has tuned needs what was found",
    "graphkernel/building.py": "the default compiler brings isl and LLVM",
    "graphkernel/frontends/known_models.py": "a model that was loaded before needs no onnx",
    "graphkernel/frontends/load.py": "writing ONNX brings all declarations, which reading does without",
    "graphkernel/elsewhere.py": "what was loaded and compiled before needs no other process",
    "graphkernel/export/kernels.py": "so does the maker of kernels for Ascend",
    "kernelgen/options.py": "most machines have no shared cache",
    "kernelgen/targets/cpu/__init__.py": "naming the target must not load LLVM",
}


def test_only_options_reads_the_environment() -> None:
    readers = {source.path for source in sources() for node in source.nodes if _names_environment(node)}
    assert readers - ENVIRONMENT_READERS == set()


def test_no_global_statement() -> None:
    places = [_place(source, node) for source in sources() for node in source.nodes if _is_ambient(node)]
    assert places == []


def test_own_modules_are_imported_at_the_top_unless_declared() -> None:
    inner = {s.path: places for s in sources() if (places := {_place(s, node) for node in _inner_imports(s)})}
    undeclared = {path: places for path, places in inner.items() if path not in LAZY_IMPORTS}
    assert undeclared == {}
    assert set(LAZY_IMPORTS) - inner.keys() == set(), "these no longer import lazily: take them off the list"


def test_every_failure_that_is_swallowed_is_named() -> None:
    bare = [_place(s, n) for s in sources() for n in s.nodes if isinstance(n, ast.ExceptHandler) and not n.type]
    assert bare == []


def test_the_rules_find_what_they_forbid() -> None:
    planted = ast.parse(
        "import os\ndef f():\n    global x\n    from graphkernel import ir\n    return os.environ['A']\n"
    )
    source = Source("planted.py", (), planted)
    assert any(_names_environment(node) for node in ast.walk(planted))
    assert any(_is_ambient(node) for node in ast.walk(planted))
    assert [node.lineno for node in _inner_imports(source)] == [4]


def _names_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and any(alias.name in ENVIRONMENT_NAMES for alias in node.names)
    of_os = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    return of_os and isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT_NAMES


def _is_ambient(node: ast.AST) -> bool:
    return isinstance(node, ast.Global)


def _inner_imports(source: Source) -> Iterator[ast.Import | ast.ImportFrom]:
    for function in source.functions():
        for node in ast.walk(function):
            if isinstance(node, ast.ImportFrom) and _own(node.module or ""):
                yield node
            if isinstance(node, ast.Import) and any(_own(alias.name) for alias in node.names):
                yield node


def _own(module: str) -> bool:
    return module.split(".")[0] in PACKAGES


def _place(source: Source, node: ast.AST) -> str:
    return f"{source.path}:{getattr(node, 'lineno', 0)}"
