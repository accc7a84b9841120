"""The README tells the truth: its programs run, its commands and files exist, its numbers are measured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sources import ROOT

README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs" / "guide.md").read_text()
KERNELGEN = ROOT / "kernelgen"
NAMED_FROM = (ROOT, KERNELGEN, ROOT / "graphkernel", KERNELGEN / "targets" / "ascend" / "lower")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_program_runs(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=120, stdout=subprocess.DEVNULL)


def test_the_programs_of_the_guide_run_one_after_another(tmp_path: Path) -> None:
    programs = re.findall(r"^```python\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    assert len(programs) >= 2
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for program in programs:
        command = [sys.executable, "-c", program]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120, stdout=subprocess.DEVNULL)


def test_make_targets_exist() -> None:
    named = set(re.findall(r"`?make ([a-z]+)", README))
    assert {"demo", "test"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_commands_exist() -> None:
    lines = re.findall(r"^graphkernel ([a-z| ]+)", README, flags=re.MULTILINE)
    named = {word for line in lines for word in (line.split("|") if "|" in line else line.split()[:1])}
    command = [sys.executable, "-m", "graphkernel", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT).stdout
    missing = {name.strip() for name in named if not re.search(rf"\b{name.strip()}\b", shown)}
    assert named
    assert missing == set()


@pytest.mark.parametrize(
    "page", sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md")}), ids=lambda page: page.name
)
def test_links_and_rooms_exist(page: Path) -> None:
    text = page.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    rooms = [name for name in re.findall(r"`((?:graphkernel|kernelgen|tests|docs)/[\w/]+(?:\.\w+)?)`", text)]
    assert missing + [name for name in rooms if not (ROOT / name).exists()] == []


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 120


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_files_named_from_a_package_exist(page: Path) -> None:
    """A word in code quotes that begins with a room and has a slash names a file or folder, with its ending or without."""
    named = {name for name in re.findall(r"`(\w+(?:/\w+)+(?:\.py)?)`", page.read_text()) if bases_of(name)}
    found = {
        name for name in named if any((at / name).exists() or (at / f"{name}.py").exists() for at in bases_of(name))
    }
    assert named - found == set()


def bases_of(name: str) -> list[Path]:
    """The folders from which a path is named that have its first folder, or would have a file of Python."""
    first = name.partition("/")[0]
    return [at for at in NAMED_FROM if (at / first).is_dir() or name.endswith(".py")]


def test_each_decision_has_its_number_date_status_and_files() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text()
    entries = re.findall(r"^\*\*(\d+)\. [^*]+\*\*.*?\n\n\*(.*?)\*$", text, flags=re.MULTILINE | re.DOTALL)
    assert sorted(int(number) for number, _ in entries) == list(range(1, len(entries) + 1))
    assert len(re.findall(r"^\*\*\d+\.", text, flags=re.MULTILINE)) == len(entries)
    for number, line in entries:
        date, status, files = line.split(" · ")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date), number
        assert status, number
        assert [name for name in re.findall("`(.*?)`", files) if not (ROOT / name).exists()] == [], number
