"""The benchmarks, one file each; a file that declares a ``Case`` is in ``CASES``.

``mul_add``, ``bias_gelu``, ``swiglu`` (element by element); ``layer_norm``, ``softmax``, ``rms_norm`` (rows);
``batch_norm``, ``transpose_mask`` (four axes); ``column_sum``, ``sum_of_squares``, ``cross_entropy`` (reductions).
"""

from __future__ import annotations

from benchmarks.case import Case
from graphkernel.catalogue import collect

CASES: tuple[Case, ...] = collect(__name__, Case)
