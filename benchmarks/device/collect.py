"""Collects the wheels that a machine with a CUDA device lacks, on a machine with a package index.

``python benchmarks/device/collect.py FOLDER`` downloads them for the other machine's Python; the folder goes along with the
repository, and ``benchmarks/device/run.sh FOLDER`` installs from it without an index. What is expected to be there already:
CUDA's driver, torch with triton, cupy, numpy.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

LACKING = (
    "annotated-doc",
    "annotated-types",
    "attrs",
    "click",
    "execnet",
    "filelock",
    "hypothesis",
    "iniconfig",
    "islpy",
    "llvmlite",
    "markdown-it-py",
    "mdurl",
    "ml_dtypes",
    "networkx",
    "nvidia-cuda-nvrtc==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "packaging",
    "platformdirs",
    "pluggy",
    "pydantic",
    "pydantic-core",
    "pygments",
    "pytest",
    "pytest-xdist",
    "rich",
    "shellingham",
    "sortedcontainers",
    "typer",
    "typing-extensions",
    "typing-inspection",
)
"""All that the packages and their tests import, down to what those bring along; a machine lacks some of them."""

NUMBERS = (39, 35, 34, 31, 28, 27, 24, 17, 12)
"""Of the manylinux platforms that a wheel may be made for; pip wants each to be named."""


def main() -> None:
    """Downloads what fits; what has no wheel for that machine is named, and the exit code is 1."""
    arguments = _parser().parse_args()
    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    there = {_plain(line) for line in Path(arguments.have).read_text().split()} if arguments.have else set[str]()
    wanted = [name for name in arguments.package or LACKING if _plain(name) not in there]
    failed = [name for name in wanted if not fetched(name, folder, arguments.python)]
    print(f"{len(list(folder.glob('*.whl')))} wheels in {folder}")
    if failed:
        raise SystemExit(f"no wheel for Python {arguments.python} on Linux x86-64: {', '.join(failed)}")


def fetched(name: str, folder: Path, python: str) -> bool:
    """Whether pip found a wheel for that Python on Linux, x86-64."""
    platforms = [f"--platform=manylinux_2_{number}_x86_64" for number in NUMBERS]
    options = ["--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
    older = ["--platform=manylinux2014_x86_64", "--platform=manylinux2010_x86_64", "--platform=manylinux1_x86_64"]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        *options,
        *platforms,
        *older,
        "-d",
        str(folder),
        name,
    ]
    return subprocess.run(command, check=False).returncode == 0


def _plain(requirement: str) -> str:
    """The name in a requirement, as registries compare names."""
    return re.split(r"[=<>!~@;\[]", requirement.strip(), maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="where the wheels go")
    parser.add_argument("--python", default="3.12", help="the version on the other machine")
    parser.add_argument("--have", metavar="FILE", help="what that machine has: lines of `pip freeze`, or names")
    parser.add_argument("--package", action="append", help="only this one; may be repeated")
    return parser


if __name__ == "__main__":
    main()
