"""``python -m tests.farm.faults FOLDER [--files 40] [--json OUT]``: a corpus verified on a cluster to which things happen.

Each kind of trouble is met while the files are verified over a real scheduler and real workers on loopback. The records must
be those of a run on this machine alone: every file once, none lost, and where something went wrong a warning says so. The
record tells of each run how many answers came, how many differ, how many lines the journal has, what was warned, and seconds.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from kernelgen.farm import Crew, Journal, crew_of
from kernelgen.system.cores import core_count
from kernelgen.system.notices import warn_once
from kernelgen.verify.pool import Job, verify_files
from kernelgen.verify.record import Record
from tests.farm.cluster import ROOT, Cluster, cluster

SECRET = "a secret of this test's own"
WORKERS = 2


@dataclass
class Trial:
    """The files, what they come to alone, and where a run may keep things."""

    files: Sequence[Path]
    alone: Mapping[str, object]
    folder: Path
    runs: dict[str, dict[str, Any]] = field(default_factory=lambda: {})

    def run(self, name: str, crew: Crew, trouble: Callable[[], None] | None = None) -> None:
        """Verifies all files over a crew; the trouble comes when a quarter of them are answered."""
        warn_once.cache_clear()
        told, start = Warnings(), time.monotonic()
        seen: list[Record] = []
        makers: list[threading.Thread] = []

        def report(record: Record) -> None:
            seen.append(record)
            if trouble is not None and len(seen) == max(1, len(self.files) // 4):
                makers.append(threading.Thread(target=trouble))
                makers[-1].start()

        path = self.folder / f"{name}.jsonl"
        with told, Journal(path) as journal:
            records = verify_files(self.files, Job(), 1, report, crew=crew, journal=journal)
        for maker in makers:
            maker.join()  # what it starts again is the cluster's to end
        self._keep(name, records, len(seen), path, told.messages, time.monotonic() - start)

    def resumed(self, name: str, address: str) -> None:
        """A run that is killed when it has some answers, and started again with the same journal."""
        path, start = self.folder / f"{name}.jsonl", time.monotonic()
        files = self.folder / "files"
        files.mkdir()
        for file in self.files:
            (files / file.name).symlink_to(file)
        out = self.folder / f"{name}.json"
        command = [sys.executable, "-m", "kernelgen", "verify", str(files), "--executor", address, "--json", str(out)]
        command += ["--journal", str(path)]
        first = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while first.poll() is None and _lines(path) < len(self.files) // 4:
            time.sleep(0.1)
        first.kill()
        first.wait()
        before = _lines(path)
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        records = [Record.from_json(each) for each in json.loads(out.read_text())["records"]]
        told = [f"killed after {before} answers, which were not asked for again"]
        self._keep(name, records, len(records), path, told, time.monotonic() - start)

    def _keep(
        self, name: str, records: Sequence[Record], reported: int, path: Path, told: Sequence[str], seconds: float
    ) -> None:
        keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
        self.runs[name] = {
            "answers": len(records),
            "reported": reported,
            "different": sum(self.alone[record.name] != essence(record) for record in records),
            "journal_lines": len(keys),
            "journal_lines_twice": len(keys) - len(set(keys)),
            "warnings": sorted({message.replace(str(self.folder), "FOLDER") for message in told}),
            "seconds": round(seconds, 1),
        }
        print(name, json.dumps(self.runs[name], indent=1), flush=True)


class Warnings(logging.Handler):
    """What the user is told in the block."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the message."""
        self.messages.append(record.getMessage())

    def __enter__(self) -> Self:
        logging.getLogger("kernelgen").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kernelgen").removeHandler(self)


def essence(record: Record) -> tuple[object, ...]:
    """What does not depend on who verified it, nor when."""
    return record.name, record.status, record.reason, record.max_error, dict(record.proof), record.argument_bytes


def on_a_cluster(trial: Trial) -> None:
    """Workers and schedulers that go, and a run that is killed."""
    with cluster(WORKERS, GRAPHKERNEL_CACHE_DIR=str(trial.folder / "cluster")) as engine:
        with crew_of(engine.address) as crew:
            trial.run("undisturbed", crew)
            trial.run("worker killed", crew, engine.kill_worker)
            trial.run("scheduler killed and restarted", crew, lambda: engine.kill_scheduler(5))
        with crew_of(engine.address) as crew:
            trial.run("scheduler killed for good", crew, lambda: _end(engine))
    with cluster(WORKERS, GRAPHKERNEL_CACHE_DIR=str(trial.folder / "cluster")) as engine:
        trial.resumed("run killed and started again", engine.address)


def with_a_shared_cache(trial: Trial) -> None:
    """A shared cache that works, one whose entries somebody has altered, and one that is out of reach."""
    shared = trial.folder / "shared"
    for name, url in (
        ("shared cache", f"file://{shared}"),
        ("shared cache, other machines", f"file://{shared}"),
        ("shared cache poisoned", f"file://{shared}"),
        ("shared cache out of reach", "ftp://127.0.0.1:9/kernels"),
    ):
        if name == "shared cache poisoned":
            for entry in shared.rglob("*.o"):
                entry.write_bytes(entry.read_bytes()[:40] + b"something else")
        where = {"GRAPHKERNEL_SHARED_CACHE": url, "GRAPHKERNEL_SHARED_CACHE_KEY": SECRET}
        with ExitStack() as stack:
            empty = stack.enter_context(tempfile.TemporaryDirectory())
            engine = stack.enter_context(cluster(WORKERS, GRAPHKERNEL_CACHE_DIR=empty, **where))
            trial.run(name, stack.enter_context(crew_of(engine.address)))


def _end(engine: Cluster) -> None:
    engine.close()


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main(
    folder: Annotated[Path, typer.Argument(help="of composite JSON files", exists=True)],
    files: Annotated[int, typer.Option(min=4, help="how many of them, evenly spread")] = 40,
    json_out: Annotated[Path | None, typer.Option("--json", help="where the record goes")] = None,
) -> None:
    """Meets every trouble once; exit code 1 if an answer is missing, different, or there twice."""
    found = sorted(path for path in folder.iterdir() if path.suffix in (".info", ".json"))
    chosen = found[:: max(1, len(found) // files)][:files]
    with tempfile.TemporaryDirectory(prefix="farm-") as place:
        os.environ["GRAPHKERNEL_CACHE_DIR"] = f"{place}/here"
        alone = {record.name: essence(record) for record in verify_files(chosen, Job(), core_count())}
        trial = Trial(chosen, alone, Path(place))
        on_a_cluster(trial)
        with_a_shared_cache(trial)
    record = {"files": len(chosen), "workers": WORKERS, "cores": core_count(), "runs": trial.runs}
    if json_out:
        json_out.write_text(json.dumps(record, indent=1) + "\n")
    wrong = [
        name
        for name, run in trial.runs.items()
        if run["answers"] != len(chosen) or run["reported"] != len(chosen) or run["different"]
        or run["journal_lines_twice"] or run["journal_lines"] != len(chosen)
    ]  # fmt: skip
    print(f"{len(trial.runs)} runs of {len(chosen)} files, wrong: {', '.join(wrong) or 'none'}")
    raise typer.Exit(bool(wrong))


if __name__ == "__main__":
    typer.run(main)
