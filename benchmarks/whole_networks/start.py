"""``python -m benchmarks.whole_networks.start NAME MODEL INPUTS``: one start on one thread, in this process alone, as JSON.

``wall`` and ``processor`` are milliseconds from the first import of the contestant's library to its first result, ``peak`` the
MiB that the process held at most. Numpy and the inputs are there before.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.child import ChildError, told_by
from benchmarks.memory import peak
from benchmarks.whole_networks.contestants import offers

Start = dict[str, float]


def starts(name: str, model: Path, inputs: Path, rounds: int) -> dict[str, Start | str]:
    """The first start of a contestant on a network, and the medians of further ones; the last line of an error.

    What it keeps on disk lies in a folder that is empty before the first. Python has compiled its sources before.
    """
    with tempfile.TemporaryDirectory() as folder:
        places = {"GRAPHKERNEL_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
        command = ["-m", "benchmarks.whole_networks.start", name, str(model), str(inputs)]
        try:
            cold: Start = told_by(command, places)
            warm: list[Start] = [told_by(command, places) for _ in range(rounds)]
        except ChildError as error:
            return {"cold": str(error)}
    return {"cold": cold, "warm": {key: round(median(each[key] for each in warm), 1) for key in cold}}


def one(name: str, model: Path, inputs: Path) -> Start:
    """What a start takes in this process."""
    with np.load(inputs) as file:
        arrays = [file[key] for key in file.files]
    contestant = dict(offers(model, 1))[name]
    wall, processor = time.perf_counter(), time.process_time()
    contestant.make()[0](*arrays)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return {"wall": round(1e3 * wall, 1), "processor": round(1e3 * processor, 1), "peak": round(peak(), 1)}


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
