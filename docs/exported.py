"""The part of the networks' page on exported models: which named fusions reach them, and what is launched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.markdown import table

RECORD = Path(__file__).parents[1] / "benchmarks" / "results" / "exported.json"
TARGETS = ("cpu", "gpu", "ascend")
HEAD = (
    "model",
    "extents",
    "operators",
    "named fusions on Ascend",
    "with kernels",
    *(f"launches: {target}" for target in TARGETS),
    "off by: cpu, ascend",
)
INTRODUCTION = """## Exported models

BERT, GPT-2, Llama, T5 and ViT of transformers with random weights, as `torch.onnx.export` writes them: by its exporter
through TorchDynamo (`dynamo`) and by the older one through TorchScript (`script`), with known (`static`) and `open`
extents. Two layers, width 64, four heads; Llama's queries share two heads of keys. The named fusions are those of Ascend at
level 2, with the operators that exporters write out made one before (`written_rms_norm` and others). `with kernels`: how
many of the operators that Ascend has by name are in kernels of ours, by name or by their parts. Launches are those at
levels 0, 2 and 3, on a gpu in as many parts as a kernel takes. The last column is the largest difference from onnxruntime's
results, relative to their largest magnitude, at level 2: natively on the cpu, in the simulator on Ascend (where extents are
known). Float16 models that onnxruntime refuses are missing: the older exporter gives LayerNormalization two data types."""


def exported() -> tuple[str, ...]:
    """The section, or nothing where there is no record."""
    if not RECORD.exists():
        return ()
    record = json.loads(RECORD.read_text())
    how = (
        f"Measured {record['date']}: `python -m benchmarks.peers.exported_models FOLDER` with torch and transformers, then "
        "`python -m benchmarks.exported FOLDER --json OUT --simulate static`."
    )
    return INTRODUCTION, how, table(HEAD, [row(name, case) for name, case in record["cases"].items()])


def row(name: str, case: Mapping[str, Any]) -> Sequence[str]:
    """One model."""
    model, dtype, exporter, extents = name.split("-")
    fired = ", ".join(f"{count} {fusion}" for fusion, count in case["named_fusions"].items())
    inside, outside = case["named_operators_in_kernels"], case["named_operators_without"]
    errors = case["largest_error"]
    return (
        f"`{model}` {dtype}, {exporter}",
        extents,
        str(case["operators"]),
        fired,
        f"{inside} of {inside + outside}",
        *(", ".join(map(str, case["launches"][target])) for target in TARGETS),
        ", ".join(f"{errors[target]:.0e}" for target in ("cpu", "ascend") if target in errors),
    )
