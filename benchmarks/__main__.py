"""``python -m benchmarks cpu|gpu|gpu_compile|gpu_networks|v100|compile|dynamic|networks|scale|ascend --json OUT``: JSON."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")


def main() -> None:
    """Parses the command line; starts over with one thread when the libraries would take more."""
    arguments = _parser().parse_args()
    if arguments.what == "gpu":
        _finish(arguments, _device(arguments))
        return
    if arguments.what == "v100":
        _finish(arguments, _published(arguments))
        return
    if arguments.what in ("gpu_compile", "gpu_networks"):
        _without_a_device(arguments)
        return
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks", *sys.argv[1:]],
            os.environ | dict.fromkeys(THREADS, "1"),
        )
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    record = _kernels(arguments) if arguments.what == "cpu" else _graphs(arguments)
    _finish(arguments, record)


def _finish(arguments: argparse.Namespace, record: dict[str, Any]) -> None:
    """Writes what there is, with the date."""
    write(Path(arguments.json), json.dumps(_dated(record), indent=1) + "\n")


def _dated(record: dict[str, Any]) -> dict[str, Any]:
    """With today's date, unless it is the record of an earlier run."""
    return {**record, "date": record.get("date") or datetime.datetime.now(datetime.UTC).date().isoformat()}


def _device(arguments: argparse.Namespace) -> dict[str, Any]:
    """All of it on a CUDA device; the file grows as parts are done. torch compiles there on all cores, as users have it.

    Without a device a file that one made gets the estimates anew.
    """
    from benchmarks.gpu.run import Request, run

    peers = not arguments.no_peers and find_spec("torch") is not None
    corpus = None if arguments.corpus is None else Path(arguments.corpus)
    request, out = Request(arguments.case, corpus, arguments.tiny, peers), Path(arguments.json)
    known: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    return run(request, lambda record: _finish(arguments, record), known if known.get("device") else None)


def _published(arguments: argparse.Namespace) -> dict[str, Any]:
    """AKG's published times of the corpus beside what the model estimates for ours."""
    from benchmarks.gpu.v100 import run

    if arguments.corpus is None:
        _parser().error("v100 needs --corpus FOLDER, beside which the published times are")
    return run(Path(arguments.corpus), arguments.tiny, arguments.jobs, lambda record: _finish(arguments, record))


def _without_a_device(arguments: argparse.Namespace) -> None:
    """What kernels take on each architecture, or whole networks verified; ends with status 1 when a kernel fails."""
    if arguments.what == "gpu_compile":
        from benchmarks.gpu.compiles import lines, run
        from benchmarks.gpu.descriptions import SMALL, Amount

        corpus = None if arguments.corpus is None else Path(arguments.corpus)
        record = run(replace(SMALL if arguments.tiny else Amount(), corpus=corpus), arguments.jobs, arguments.case)
        write(Path(arguments.json), lines(_dated(record)) + "\n")
    else:
        from benchmarks.gpu import networks

        record = networks.run(arguments.jobs, arguments.case, tiny=arguments.tiny)
        _finish(arguments, record)
    sys.exit(bool(record["failed"]))


def _kernels(arguments: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.run import run

    peers = not arguments.no_peers and find_spec("torch") is not None
    return run(arguments.case, tiny=arguments.tiny, with_peers=peers, rounds=arguments.rounds, cold=arguments.cold)


def _graphs(arguments: argparse.Namespace) -> dict[str, Any]:
    """The graph level: whole networks, or how the time grows with the graph; compile times, and kernels for all sizes."""
    from benchmarks import ascend_networks, compile_time, dynamic, networks, scale
    from benchmarks.machine import describe

    known = {
        "networks": networks,
        "scale": scale,
        "compile": compile_time,
        "dynamic": dynamic,
        "ascend": ascend_networks,
    }
    measure = known[arguments.what]
    return {"machine": describe(), "tiny": arguments.tiny, "cases": measure.run(arguments.case, tiny=arguments.tiny)}


def write(path: Path, text: str) -> None:
    """Writes a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text)
    unfinished.replace(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "what",
        choices=[
            "cpu",
            "gpu",
            "gpu_compile",
            "gpu_networks",
            "v100",
            "compile",
            "dynamic",
            "networks",
            "scale",
            "ascend",
        ],
        help="kernels on the cpu or on a CUDA device, what they take of one, whole networks in the interpreter, estimates "
        "beside AKG's times on a V100, compile times, kernels for all sizes, the graph level, or networks in the simulator "
        "of Ascend",
    )
    parser.add_argument("--json", required=True, metavar="OUT", help="the file to write")
    parser.add_argument("--case", action="append", default=[], help="only this case, or family; may be repeated")
    parser.add_argument("--rounds", type=int, default=15, help="rounds; every contestant runs once in each")
    parser.add_argument("--cold", type=int, default=1, metavar="N", help="fresh processes for compile times; 0: none")
    parser.add_argument("--tiny", action="store_true", help="small shapes, to see that it runs")
    parser.add_argument(
        "--corpus", metavar="FOLDER", help="gpu, gpu_compile: composites of which 200 are verified, compiled; v100: all"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="gpu_compile, v100: processes")
    parser.add_argument("--no-peers", action="store_true", help="ours and the machine's limit only")
    return parser


if __name__ == "__main__":
    main()
