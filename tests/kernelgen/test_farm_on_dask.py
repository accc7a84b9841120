"""Verification over a real scheduler and real workers, of which one and then the other is killed: all answers, each once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kernel_examples import Writer, tensor

from kernelgen.composite.write import dump_desc
from kernelgen.farm import crew_of
from kernelgen.verify.pool import Job, verify_files
from tests.farm.cluster import cluster
from tests.farm.faults import Trial, essence

pytest.importorskip("distributed", reason="dask.distributed is not installed: pip install 'graphkernel[farm]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # dask's own, about connections that end


@pytest.mark.long
def test_whatever_is_killed_each_file_has_its_record_once(tmp_path: Path) -> None:
    files = tmp_path / "given"
    files.mkdir()
    for size in range(4, 16):
        w, x = Writer(), tensor("x", size)
        (files / f"neg_{size}.info").write_text(
            json.dumps(dump_desc(w.desc("neg", (x,), w.op("Neg", x, shape=(size,)))))
        )
    paths = sorted(files.iterdir())
    alone = {record.name: essence(record) for record in verify_files(paths, Job(), 1)}
    trial = Trial(paths, alone, tmp_path)
    with cluster(2) as engine, crew_of(engine.address) as crew:
        trial.run("worker killed", crew, engine.kill_worker)
        trial.run("scheduler killed", crew, lambda: engine.kill_scheduler(1))
    for run in trial.runs.values():
        assert (run["answers"], run["reported"], run["journal_lines"]) == (12, 12, 12)
        assert (run["different"], run["journal_lines_twice"]) == (0, 0)
