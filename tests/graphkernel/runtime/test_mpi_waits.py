"""MPI waits for other ranks as long as it was told to, and a message has the size that is received."""

import os
import subprocess
import sys

import pytest

from tests.ranks.processes import ROOT, missing

PROGRAM = """
import numpy as np
from mpi4py import MPI
from graphkernel.communication.mpi import Mpi

alone = Mpi(MPI.COMM_SELF, seconds=0.05)
out = np.zeros(4, np.float32)
for tag, sent in ((1, None), (2, np.ones(3, np.float32))):
    try:
        if sent is not None:
            sending = alone.send(sent, 0, tag)
        alone.receive(out, 0, tag).wait()
    except (TimeoutError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
import os
os._exit(0)  # a receive is left that nobody sends to
"""


@pytest.mark.skipif(bool(missing("mpi")), reason="no MPI")
def test_nobody_sends_and_somebody_sends_less():
    around = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", PROGRAM], env=around, capture_output=True, text=True, timeout=120)
    assert found.stdout.splitlines() == [
        "TimeoutError: rank 0 waited 0.05 s for the other ranks",
        "ValueError: 12 bytes came, 16 are needed",
    ], found.stderr
