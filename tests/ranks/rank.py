"""One rank of a job: ``python -m tests.ranks.rank OVER OUT``, under mpiexec, or with RANK and WORLD_SIZE for gloo.

Runs every program at every level, and every collective on every data type; leaves results and the order of what it did.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

from graphkernel.communication.communicator import Communicator
from tests.ranks.every import every_collective
from tests.ranks.logged import Logged
from tests.ranks.programs import PROGRAMS, on_rank

LEVELS = range(4)


def main() -> None:
    over, out = sys.argv[1], Path(sys.argv[2])
    communicator = Logged(_communicator(over, out))
    results: dict[str, np.ndarray] = {}
    logs: dict[str, list[str]] = {}
    for name in PROGRAMS:
        for level in LEVELS:
            communicator.log.clear()
            for number, array in enumerate(on_rank(name, level, communicator)):
                results[f"{name}.{level}.{number}"] = array
            logs[f"{name}.{level}"] = list(communicator.log)
    problems = every_collective(communicator.over)
    np.savez(out / f"rank{communicator.rank}.npz", **results)  # pyright: ignore[reportArgumentType]
    (out / f"rank{communicator.rank}.json").write_text(json.dumps({"logs": logs, "problems": problems}))


def _communicator(over: str, out: Path) -> Communicator:
    if over == "mpi":
        from graphkernel.communication.mpi import Mpi

        return Mpi()
    import torch.distributed as library  # pyright: ignore[reportMissingImports]

    from graphkernel.communication.torch_distributed import TorchDistributed

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    library.init_process_group("gloo", init_method=f"file://{out}/meeting", rank=rank, world_size=size)
    return TorchDistributed()


if __name__ == "__main__":
    main()
