"""The table of contents of a package. Whatever it says is of the right type, or the package is refused with the place."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from graphkernel.errors import PackageError
from kernelgen.native.mapped import is_supported
from kernelgen.native.processor import processor
from kernelgen.system.bounded_io import json_value
from kernelgen.system.json_parts import Items, flag, items, table, text, texts, whole, wholes
from kernelgen.system.named_tuples import NamedTuple

FORMAT = 10
"""Grows when a package of this format would be read wrong by an older reader or by a newer one."""

PACKAGE = ".gkx"
"""The extension of packages."""

MANIFEST, PROGRAM, GRAPH, REPORT = "manifest.json", "program.json", "graph.gk", "report.json"
CODE, WEIGHTS = "code.bin", "weights.safetensors"
KEPT = "kept.json"
"""Digests, types and shapes of weights that lie beside a package in the cache: no file of a user has the entry."""


class Machine(NamedTuple):
    """What machine code runs on: system and processor family, the flags that it may use, and the layout of Python's objects.

    ``flags`` are Linux's words, see :mod:`kernelgen.native.processor`; ``object_bytes`` is the size of an object of no content.
    """

    system: str
    architecture: str
    flags: tuple[str, ...]
    object_bytes: int

    @staticmethod
    def here(flags: Sequence[str]) -> Machine:
        """This one, of which these flags are used."""
        return Machine(sys.platform, platform.machine(), tuple(flags), bytes.__basicsize__)

    def why_not_here(self) -> str:
        """Why code for this machine does not run here; empty where it does."""
        if not is_supported():
            return f"machine code is loaded on x86-64 Linux alone, this is {sys.platform} on {platform.machine()}"
        if (self.system, self.architecture) != (sys.platform, platform.machine()):
            return f"it is for {self.system} on {self.architecture}, this is {sys.platform} on {platform.machine()}"
        missing = sorted(set(self.flags) - processor().flags)
        if missing:
            return f"this processor lacks {', '.join(missing)}"
        if self.object_bytes != bytes.__basicsize__:
            return "it is for another build of Python, whose objects lie in memory in another way"
        return ""


class RegionRecord(NamedTuple):
    """A region of the host library: the entry of its model, its operators by number.

    ``group`` is that of its operators, by which the planner forms regions; ``has_objects`` as in
    :class:`~graphkernel.runtime.onnxruntime.sessions.RegionModel`; ``weights`` are names in the model and digests of constants.
    """

    group: str
    model: str
    operators: tuple[int, ...]
    has_objects: bool
    weights: tuple[tuple[str, str], ...]


class Manifest(NamedTuple):
    """The parts of a package. ``digests`` are those of its entries, without the weights, which have checksums alone.

    ``operators`` are those of the graph, with the files that declare them; others of :mod:`graphkernel.ops` are not loaded.
    ``kernels`` say how each is called and where its code lies, ``caller`` and ``team`` where that lies which all are called
    through, and which runs parallel loops: lists of :mod:`kernelgen.native.records`.
    """

    format: int
    graphkernel: str
    target: str
    machine: Machine
    library: str
    digests: Mapping[str, str]
    operators: tuple[tuple[str, str], ...]
    kernels: Items
    regions: tuple[RegionRecord, ...]
    caller: Items | None = None
    team: Items | None = None


def manifest_text(manifest: Manifest) -> str:
    """As JSON; equal manifests give equal texts."""
    regions = [region._asdict() for region in manifest.regions]
    document = {**manifest._asdict(), "machine": manifest.machine._asdict(), "regions": regions}
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def read_manifest(content: bytes, version: str) -> Manifest:
    """The manifest of an entry. Raises PackageError for one of another format or version, or for another machine."""
    document = json_value(content.decode(), PackageError)
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise PackageError(f"a package of format {found!r}, this reads format {FORMAT}; build it again")
    try:
        manifest = _manifest(table(document))
    except KeyError as error:
        raise PackageError(f"{MANIFEST}: {error.args[0]}: missing") from error
    except (TypeError, ValueError) as error:
        raise PackageError(f"{MANIFEST}: {error}") from error
    if manifest.graphkernel != version:
        raise PackageError(f"built by graphkernel {manifest.graphkernel}, this is {version}; build it again")
    if reason := manifest.machine.why_not_here():
        raise PackageError(f"built for another machine: {reason}; build it here")
    return manifest


def _manifest(given: Mapping[str, Any]) -> Manifest:
    for name in given.keys() - set(Manifest._fields):
        raise ValueError(f"{name}: unknown; known: {', '.join(Manifest._fields)}")
    caller, team = given["caller"], given["team"]
    return Manifest(
        whole(given["format"]), text(given["graphkernel"]), text(given["target"]), _machine(table(given["machine"])),
        text(given["library"]), {name: text(digest) for name, digest in table(given["digests"]).items()},
        _pairs(given["operators"]), items(given["kernels"]), tuple(map(_region, items(given["regions"]))),
        None if caller is None else items(caller), None if team is None else items(team),
    )  # fmt: skip


def _machine(given: Mapping[str, Any]) -> Machine:
    flags, size = texts(given["flags"]), whole(given["object_bytes"])
    return Machine(text(given["system"]), text(given["architecture"]), flags, size)


def _region(entry: object) -> RegionRecord:
    given = table(entry)
    operators, weights = wholes(given["operators"]), _pairs(given["weights"])
    return RegionRecord(text(given["group"]), text(given["model"]), operators, flag(given["has_objects"]), weights)


def _pairs(given: object) -> tuple[tuple[str, str], ...]:
    return tuple((text(one), text(other)) for one, other in items(given))
