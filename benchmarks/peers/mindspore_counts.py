"""What MindSpore launches for our networks on a CPU: ``python -m benchmarks.peers.mindspore_counts --json OUT``.

Runs with an interpreter that has ``mindspore==2.10.0`` and ``decorator``; nothing of ours is imported. Each network is
built from MindSpore's own layers at real size, compiled in graph mode with graph kernel fusion on, and counted in the
graph before the first fusion stage and behind the last one. Each runs in a process of its own with a time limit.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mindspore

from benchmarks.peers.mindspore_nets import NETWORKS
from benchmarks.peers.saved_graph import launches

LIMIT_SECONDS = 1500


def main() -> None:
    """Every network in its own process, or one network in this one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", required=True, metavar="OUT")
    parser.add_argument(
        "--net", action="append", default=[], choices=sorted(NETWORKS), help="only this one; may repeat"
    )
    parser.add_argument("--level", action="append", type=int, default=[], help="opt_level; default 1, 2 and 3")
    parser.add_argument("--inside", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        os.chdir(arguments.inside)
        Path(arguments.json).write_text(json.dumps(counted(arguments.net[0])))
        return
    nets = {
        name: {f"level{level}": _in_process(name, level) for level in arguments.level or [1, 2, 3]}
        for name in arguments.net or NETWORKS
    }
    record = {
        "mindspore": mindspore.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "nets": nets,
    }
    Path(arguments.json).write_text(json.dumps(record, indent=1) + "\n")


def _in_process(name: str, level: int) -> dict[str, Any]:
    """The counts, or ``{"failed": why}``: kernels that take too long to build, a crash."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts.json"
        command = [sys.executable, "-m", __spec__.name, "--inside", folder, "--net", name, "--json", str(out)]
        flags = {"MS_DEV_GRAPH_KERNEL_FLAGS": f"--opt_level={level}", "GLOG_v": "3"}
        start = time.perf_counter()
        try:
            done = subprocess.run(command, env=os.environ | flags, timeout=LIMIT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return {"failed": f"not compiled within {LIMIT_SECONDS} s"}
        if not out.exists():
            return {"failed": f"ended with {done.returncode}"}
        found = json.loads(out.read_text()) | {"seconds": round(time.perf_counter() - start, 1)}
        print(name, level, found, flush=True)
        return found


def counted(name: str) -> dict[str, Any]:
    """Compiles a network in the working folder and reads the graphs that MindSpore saves."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE, device_target="CPU", enable_graph_kernel=True)
    mindspore.set_context(save_graphs=2, save_graphs_path="ir")
    net, inputs = NETWORKS[name]()
    net.compile(*inputs)
    saved = sorted(Path("ir").rglob("graph_kernel/*.ir"))
    graphs = {path.name[5:]: path.read_text() for path in saved}
    before = next(text for file, text in graphs.items() if file.startswith("stage0_preprocess_0_"))
    after = [text for file, text in graphs.items() if file.startswith("stage7_")][-1]
    return {"before": launches(before), "after": launches(after)}


if __name__ == "__main__":
    main()
