"""compile, which remembers: what was compiled before on this machine is taken from disk, without optimizer or compiler.

What is kept is a package without weights (:mod:`graphkernel.packages`), beside the compiled kernels and under the same rules:
for its owner alone, bound to its key, and made again where it is missing or damaged. The key is a digest of the graph's
text, which names weights by their digests, of what was asked for, and of everything else that decides: this program's
sources, the libraries, the processor, threads and the environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections import ChainMap
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from graphkernel.errors import PackageError
from graphkernel.packages.container import PackageReader
from graphkernel.packages.kept_weights import Weight, keep_weights, kept_weights
from graphkernel.packages.manifest import KEPT
from graphkernel.packages.read import begin_library, read_package
from graphkernel.packages.unread import UnreadGraph, content_of, file_of
from graphkernel.system.environment import Environment
from kernelgen import options
from kernelgen.native import mapped
from kernelgen.surroundings import surroundings as surroundings_of
from kernelgen.system.json_parts import text, wholes
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.system.object_cache import cache_key, leading, read_entry, write_entry
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.graph import Graph

if TYPE_CHECKING:
    import numpy as np

    from graphkernel.communication.groups import Communicators
    from graphkernel.report.page.story import Story
    from graphkernel.runtime.executable import Executable
    from kernelgen.tuning.database import Tunings

ROOM = "graphs"
"""The folder of the cache that executables are kept in."""

PACKAGES, LIBRARIES = ("graphkernel", "kernelgen"), ("numpy", "onnx", "onnxruntime", "islpy", "llvmlite")
_CHECKED = "enable_debug_mode"


def compile(  # the public name
    graph: Graph,
    opt_level: int | None = None,
    target: str = "cpu",
    flags: str | Mapping[str, object] | None = None,
    *,
    compiler: Callable[..., Any] | None = None,
    host: Any = "auto",  # a name, or a library
    strict: bool = False,
    threads: int | None = None,
    progress: Any = None,
    tuned: Tunings | str | os.PathLike[str] | None = None,
    communicator: Communicators = None,
) -> Executable:
    """The callable of a graph, see :func:`graphkernel.driver.compile`; from disk where the same was compiled before.

    ``communicator`` is this process among others, for graphs with collectives (:mod:`graphkernel.communication`), or a
    mapping from the names of their groups. It is no part of what is kept: all ranks share that.
    """
    tunings = None if tuned is None else _tunings(tuned)
    asked = _Asked(opt_level, target, flags, compiler, host, strict, threads, progress, tunings)
    if communicator is not None:
        return compile(graph, **asked._asdict()).over(communicator)
    environment = Environment.read()
    is_graph = isinstance(graph, Graph)  # pyright: ignore[reportUnnecessaryIsInstance]  # users give anything
    is_plain = is_graph and asked.is_plain and not _has_rules(graph)
    if is_plain and is_kept(f"{asked.key}{environment.flags}", environment):
        return _kept(graph, asked, environment)
    return asked.made(graph)


class _Asked(NamedTuple):
    """What is asked for beside the graph: parameters of :func:`compile`, by their names."""

    opt_level: int | None
    target: str
    flags: str | Mapping[str, object] | None
    compiler: Callable[..., Any] | None
    host: Any
    strict: bool
    threads: int | None
    progress: Any
    tuned: Tunings | None

    @property
    def is_plain(self) -> bool:
        """Whether text says all that is asked for, and a package can hold what is made of it."""
        return self.compiler is None and isinstance(self.host, str) and self.target == "cpu"

    @property
    def key(self) -> str:
        """What decides about the result, as text."""
        flags = sorted(self.flags.items()) if isinstance(self.flags, Mapping) else self.flags
        asked = repr((self.opt_level, flags, self.host, self.strict, self.threads))
        return asked + (self.tuned.digest if self.tuned else "")

    @property
    def settings(self) -> dict[str, Any]:
        """What a model's file is compiled with by a process that reads it itself."""
        return {name: getattr(self, name) for name in ("opt_level", "flags", "host", "strict", "threads")}

    def made(self, graph: Graph) -> Executable:
        """The executable, by the optimizer and the compiler."""
        from graphkernel import driver  # the optimizer loads when something is compiled for the first time

        return driver.compile(graph, **self._asdict())


def _kept(graph: Graph, asked: _Asked, environment: Environment) -> Executable:
    """The executable from disk, where it is kept when it was made."""
    text, constants = content_of(graph)
    place = _Place(cache_key(text, asked.key, repr(environment), surroundings()))
    unwatched = asked._replace(progress=None)  # whoever watched this time need not be there the next
    recall = partial(_recalled, place, constants, asked.threads, partial(unwatched.made, graph))
    found = recall()
    if found is None and asked.tuned is None and (model := file_of(graph)) is not None:
        found = recall(model.compile(asked.settings, asked.progress))
    if found is None:
        with leading(place.folder, ROOM, place.key, place.shared):
            found = recall()  # somebody else may have made it meanwhile
            if found is None:
                found = asked.made(graph)
                with suppress(PackageError):  # what no package can hold is compiled each time
                    place.keep(found, constants)
                return found
    found.again = partial(compile, graph, **unwatched._asdict())
    return found


class _Place:
    """Where an executable is kept, on this machine and among those that share a cache."""

    def __init__(self, key: str) -> None:
        self.key, self.folder, self.shared = key, options.cache_dir(), options.shared_cache()

    def read(self) -> bytes | None:
        return None if self.folder is None else read_entry(self.folder, ROOM, self.key, self.shared)

    def weights(self, names: memoryview) -> Iterator[ConstantData]:
        """Those that a package names and that are kept beside it."""
        found = [Weight(text(digest), text(of), wholes(shape)) for digest, of, shape in json.loads(bytes(names))]
        return kept_weights(self.folder, found, self.shared) if found and self.folder is not None else iter(())

    def keep(self, made: Executable, constants: Container[str]) -> None:
        from graphkernel.packages.write import package_bytes  # what was compiled before is not written

        content = package_bytes(made, constants, partial(keep_weights, self.folder, shared=self.shared))
        write_entry(self.folder, ROOM, self.key, content, shared=self.shared)


def _recalled(
    place: _Place,
    constants: Mapping[str, np.ndarray],
    threads: int | None,
    anew: Callable[[], Executable],
    built: str | None = None,
) -> Executable | None:
    found = place.read()
    if found is not None:
        with suppress(Exception):  # whatever is wrong with what is kept: it can be made again
            package = PackageReader(f"{ROOM}/{place.key}", lambda: found)
            begin_library(package, threads)
            beside = {data.digest: data.array for data in place.weights(package.view(KEPT)) if data.array is not None}
            weights = ChainMap(beside, constants)  # pyright: ignore[reportArgumentType]  # nobody writes it
            return read_package(package, weights, threads, partial(_story, anew), built)
    return None


def _has_rules(graph: Graph) -> bool:
    """Whether an operator brings the rule that kernels compute it by, of which the graph's text says nothing.

    Those of a graph that nobody has read are this program's own.
    """
    if isinstance(graph, UnreadGraph):
        return False
    nodes = [*graph.nodes, *(inner for node in graph.nodes if node.body is not None for inner in node.body.nodes)]
    return any(node.op.brings_rule for node in nodes)


def is_kept(asked: str, environment: Environment) -> bool:
    """Whether this machine keeps what it compiles, nobody wants to watch the compiler, and all that decides is known."""
    watched = environment.dump_dir or environment.dump_ir or _CHECKED in asked
    return mapped.is_supported() and not watched and not _has_plugins()


def surroundings() -> str:
    """A digest of what decides beside the graph and what is asked for, see :mod:`kernelgen.surroundings`."""
    return surroundings_of(PACKAGES, LIBRARIES)


@cache
def _has_plugins() -> bool:
    """Whether plugins are installed, which may be anything; importlib.metadata would take longer than all of the rest."""
    return any(
        b"[graphkernel.plugins]" in _content(os.path.join(folder, name, "entry_points.txt"))
        for folder in sys.path
        if os.path.basename(folder) in ("site-packages", "dist-packages") and os.path.isdir(folder)
        for name in os.listdir(folder)
        if name.endswith(".dist-info")
    )


def _content(path: str) -> bytes:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return b""


def _tunings(given: Tunings | str | os.PathLike[str]) -> Tunings:
    from kernelgen.tuning.database import Tunings  # only who has tuned needs it

    return Tunings.of(given)


def _story(anew: Callable[[], Executable]) -> Story:
    """What a report tells of a graph that was compiled before: nobody kept it, so it is compiled once more."""
    story = anew().report.story
    assert story is not None, "what was compiled just now has one"
    return story()
