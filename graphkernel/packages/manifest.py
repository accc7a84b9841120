"""The table of contents of a package. Whatever it says is of the right type, or the package is refused with the place."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Sequence
from typing import NamedTuple

from graphkernel.errors import PackageError
from kernelgen.errors import ArgumentError
from kernelgen.native.mapped import is_supported
from kernelgen.native.processor import processor
from kernelgen.native.records import CodeRecord, KernelRecord
from kernelgen.strict_json import from_json, to_json
from kernelgen.system.bounded_io import json_value

FORMAT = 4
"""Grows when a package of this format would be read wrong by an older reader or by a newer one."""

PACKAGE = ".gkx"
"""The extension of packages."""

MANIFEST, PROGRAM, GRAPH, REPORT = "manifest.json", "program.json", "graph.gk", "report.json"
CODE, WEIGHTS = "code.bin", "weights.safetensors"


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
    """A region of the host library: its model's entry and digest, its operators by number.

    ``group`` is that of its operators, by which the planner forms regions; ``has_objects`` as in
    :class:`~graphkernel.runtime.onnxruntime.sessions.RegionModel`; ``weights`` are names in the model and digests of constants.
    """

    group: str
    model: str
    sha256: str
    operators: tuple[int, ...]
    has_objects: bool
    weights: tuple[tuple[str, str], ...]


class Manifest(NamedTuple):
    """The parts of a package, with digests. ``operators`` are those of the graph, with the files that declare them.

    Others of :mod:`graphkernel.ops` are not loaded.
    """

    format: int
    graphkernel: str
    target: str
    machine: Machine
    library: str
    program_sha256: str
    graph_sha256: str
    report_sha256: str
    operators: tuple[tuple[str, str], ...]
    kernels: tuple[KernelRecord, ...]
    regions: tuple[RegionRecord, ...]
    caller: CodeRecord | None = None
    team: CodeRecord | None = None


def manifest_text(manifest: Manifest) -> str:
    """As JSON; equal manifests give equal texts."""
    return json.dumps(to_json(manifest), separators=(",", ":"), sort_keys=True)


def read_manifest(text: str, version: str) -> Manifest:
    """The manifest of a text. Raises PackageError for one of another format or version, or for another machine."""
    document = json_value(text, PackageError)
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise PackageError(f"a package of format {found!r}, this reads format {FORMAT}; build it again")
    try:
        manifest = from_json(Manifest, document)
    except (ArgumentError, ValueError) as error:
        raise PackageError(f"{MANIFEST}: {error}") from error
    if manifest.graphkernel != version:
        raise PackageError(f"built by graphkernel {manifest.graphkernel}, this is {version}; build it again")
    if reason := manifest.machine.why_not_here():
        raise PackageError(f"built for another machine: {reason}; build it here")
    return manifest
