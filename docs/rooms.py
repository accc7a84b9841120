"""The rooms of both packages, drawn from their imports: floors, arrows, and what each room is for.

A room is a folder of a package, or a file that lies beside the folders. An arrow says that a file of the one room imports a
file of the other when it is loaded; imports for types alone are none.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import networkx as nx

from docs.markdown import table

ROOT = Path(__file__).parents[1]
PACKAGES = ("graphkernel", "kernelgen")
TITLES = {"graphkernel": "graphkernel: from a graph to kernels", "kernelgen": "kernelgen: from a kernel's body to code"}


def rooms() -> str:
    """For each package its floors as a table and its rooms as a Mermaid graph, in Markdown."""
    arrows = room_graph(import_graph(ROOT), depth=2)
    drawn = (f"### {TITLES[name]}\n\n{_floor_table(name)}\n\n{_picture(arrows, name)}" for name in PACKAGES)
    return "\n" + "\n\n".join(drawn) + "\n\n"


def import_graph(root: Path) -> nx.DiGraph[str]:
    """Which module imports which when it is loaded, over the packages that lie in a folder.

    Args:
        root: the folder that holds ``graphkernel`` and ``kernelgen``, or some of them.

    Returns:
        A graph whose nodes are dotted module names, a package's ``__init__`` under the package's own name. Edges go from the
        importing module to the imported one.
    """
    files = {_module(path.relative_to(root)): path for name in PACKAGES for path in (root / name).rglob("*.py")}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from((name, {"room": _home(name, path)}) for name, path in files.items())
    for name, path in files.items():
        graph.add_edges_from((name, used) for used in _used(path, files) if used != name)
    return graph


def room_graph(modules: nx.DiGraph[str], depth: int) -> nx.DiGraph[str]:
    """An import graph with the modules of each room as one node.

    Args:
        modules: what :func:`import_graph` gives.
        depth: how many names a room's own name has at most: 2 takes ``kernelgen.poly.model`` for ``kernelgen.poly``.

    Returns:
        A graph of dotted room names; the packages' own ``__init__`` files, which hold no code of theirs, are left out.
    """

    def room(module: str) -> str:
        return ".".join(modules.nodes[module]["room"].split(".")[:depth])

    pairs = {(room(user), room(used)) for user, used in modules.edges}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(room(module) for module in modules)
    graph.add_edges_from((user, used) for user, used in pairs if user != used)
    graph.remove_nodes_from(PACKAGES)
    return graph


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _home(module: str, path: Path) -> str:
    """The folder of a module, or the module itself where it lies beside the folders."""
    inner = path.stem == "__init__" or module.count(".") == 1
    return module if inner else module.rpartition(".")[0]


def _used(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules that a file imports when it is loaded."""
    for node in _loaded(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif node.module:
            names = (f"{node.module}.{name.name}" for name in node.names)
            found = {name if name in modules else node.module for name in names}
            yield from found & modules.keys()


def _loaded(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports at the top of a module, those for types alone left out."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _loaded((*node.body, *node.orelse))
        elif isinstance(node, ast.Try):
            yield from _loaded((*node.body, *(line for handler in node.handlers for line in handler.body)))


def _floors(package: str) -> tuple[tuple[str, ...], ...]:
    """The rooms of each floor, highest first, as import-linter is told."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["id"] == f"{package}-floors")
    return tuple(tuple(re.split(r"\s*[|:]\s*", layer)) for layer in layers)


def _floor_table(package: str) -> str:
    """The rooms from the highest floor down, each with its purpose."""
    rooms_in_order = (room for floor in _floors(package) for room in sorted(floor) if room != "__main__")
    rows = [(f"`{room}`", _purpose(ROOT / package / room)) for room in rooms_in_order]
    return table(("room", "what it is for"), rows)


def _purpose(room: Path) -> str:
    """The first sentence of a room's docstring."""
    path = room / "__init__.py" if room.is_dir() else room.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    line = " ".join(text.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.])\s+(?=[A-Z])", line)[0]
    return re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", lambda found: f"`{found[1] or found[2]}`", sentence)


def _picture(arrows: nx.DiGraph[str], package: str) -> str:
    """The arrows of one package that do not follow from others."""
    inside = (name for name in arrows if name.startswith(f"{package}.") and not name.endswith(".__main__"))
    inner = nx.transitive_reduction(arrows.subgraph(inside))
    ids = {name: name.partition(".")[2] for name in sorted(inner)}
    nodes = [
        f"    {name}[{name}]" if (ROOT / package / name).is_dir() else f"    {name}({name})" for name in ids.values()
    ]
    lines = [f"    {ids[user]} --> {ids[used]}" for user, used in sorted(inner.edges)]
    return "\n".join(["```mermaid", "flowchart TB", *nodes, *lines, "```"])
