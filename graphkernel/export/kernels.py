"""Makes the kernels of a fused graph for an Ascend machine, equal ones once, and writes all that an owner of a card needs.

NAME.gk                the graph; fused nodes without a kernel are ordinary operators again
NAME_kernels/          report.html, report.json, network.json
    kernel_meta/       for each kernel .cpp, .json (kernel_meta), .info (composite JSON), .npz (data), and launch.py
    timelines/         for each kernel .svg and .trace.json
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphkernel.errors import OptionError
from graphkernel.export.network import describe
from graphkernel.export.summary import FAILED, PASSED, VENDOR, KernelLine, NetworkSummary, Run
from graphkernel.handoff import KernelDesc, key_of, to_desc
from graphkernel.ops.library.host import operator_name
from graphkernel.passes.shape.kernel_packet import is_packet
from graphkernel.report.entries import bytes_moved, bytes_unfused
from kernelgen.system.bounded_io import write_whole
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.inline import inline
from kernelgen.tensor.operator import Kind

if TYPE_CHECKING:
    from kernelgen.ascend_package import Kit

Maker = Callable[[KernelDesc], "Kit"]
"""Makes a kernel's files and runs it in the simulator: kernelgen.ascend_package, or a stand-in."""
Watcher = Callable[[int, int, KernelLine], None]
"""Is told (how many are done, how many there are, what was found) after every kernel."""

KERNELS, TIMELINES = "kernel_meta", "timelines"


def maker_for(machine: str) -> Maker:
    """kernelgen's maker for a machine: one of its names, or the path of a platform_config ``.ini``.

    Raises OptionError for a name or a file that is none.
    """
    from kernelgen.ascend_package import make_kit  # polyhedral and LLVM tools load when the first kernel is compiled
    from kernelgen.errors import BackendUnavailable
    from kernelgen.targets import find_target

    try:
        target = find_target(f"ascend:{machine}")
    except BackendUnavailable as error:
        raise OptionError(str(error)) from error
    return lambda desc: make_kit(desc, target)


NO_LAUNCH = (Kind.VIRTUAL, Kind.RESHAPE)  # names, and views of the same elements


def export(
    before: Graph, fused: Graph, folder: Path, machine: str, maker: Maker, watch: Watcher = lambda *_: None
) -> tuple[Graph, NetworkSummary]:
    """Writes the kernels of ``fused`` into the folder; gives the graph that runs with them, and the summary.

    ``before`` is the graph as it came, for its counts. A packet of an operator that stays with the vendor is no kernel that
    was refused: it is operators that were left to the vendor, as they were before they were packed.
    """
    start = time.perf_counter()
    groups = _distinct(fused)
    lines: list[KernelLine] = []
    made: dict[Node, str] = {}
    for desc, nodes in groups:
        kit = maker(desc)
        line = _line(kit, nodes)
        made.update(dict.fromkeys(nodes, line.status))
        if line.status == VENDOR and is_packet(nodes[0]):
            continue
        kit.write(folder / KERNELS, folder / TIMELINES)
        lines.append(line)
        watch(len(lines), len(groups), line)
    runnable, _ = inline(fused, lambda node: made[node] == VENDOR)
    others = [node for node in runnable.operators if node.body is None]
    outside = Counter(operator_name(node) for node in others if node.op.kind not in NO_LAUNCH)
    summary = NetworkSummary(
        fused.name,
        machine,
        len(before.operators),
        len(runnable.operators),
        tuple(lines),
        dict(sorted(outside.items(), key=lambda one: (-one[1], one[0]))),
        len(others) - outside.total(),
        round(time.perf_counter() - start, 1),
    )
    network = json.dumps(describe(runnable), indent=1) + "\n"
    files = {"network.json": network, "report.json": summary.to_json(), "report.html": summary.to_html()}
    for name, text in files.items():
        write_whole(folder / name, text, OptionError, folders=True)
    return runnable, summary


def _distinct(graph: Graph) -> list[tuple[KernelDesc, list[Node]]]:
    """The descriptions of the fused nodes, equal ones once; different ones have different names."""
    found: dict[str, tuple[KernelDesc, list[Node]]] = {}
    names: Counter[str] = Counter()
    for node in graph.operators:
        if node.body is not None:
            desc = to_desc(node, "ascend")
            key = key_of(desc)
            if key not in found:
                names[desc.name] += 1
                count = names[desc.name]
                name = desc.name if count == 1 else f"{desc.name}_{count}"
                found[key] = (desc.renamed(name), [])
            found[key][1].append(node)
    return list(found.values())


def _line(kit: Kit, nodes: Sequence[Node]) -> KernelLine:
    body = nodes[0].body
    assert body is not None, "only fused nodes have kernels"
    meta, record = kit.meta, kit.record
    status = {"passed": PASSED, "failed": FAILED}.get(record.status.value, VENDOR)
    return KernelLine(
        str(meta.get("kernelName", kit.desc.name)),
        status,
        tuple(node.op.name for node in body.operators),
        tuple(str(value.type) for value in body.inputs),
        tuple(str(value.type) for value in body.outputs),
        tuple(node.name for node in nodes),
        bytes_moved((*nodes[0].args, *nodes[0].outs)),
        bytes_unfused(body),
        record.reason,
        record.message,
        int(meta.get("blockDim", 0)),
        int(meta.get("ubBytes", 0)),
        _run(kit),
    )


def _run(kit: Kit) -> Run | None:
    if kit.rehearsal is None:
        return None
    found, report = kit.rehearsal, kit.rehearsal.report
    return Run(
        found.shapes,
        found.scaled,
        report.cycles,
        report.microseconds,
        report.bound_by,
        dict(report.pipe_cycles()),
        report.gm_bytes,
        found.error,
        f"{TIMELINES}/{kit.meta['kernelName']}.svg",
    )
