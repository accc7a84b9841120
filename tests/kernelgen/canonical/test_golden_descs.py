"""What passes do to small descriptions, as text: ``pytest --update-golden`` writes it, the difference is read like code."""

from __future__ import annotations

from pathlib import Path

import pytest
from normalise_cases import CASES

from kernelgen.canonical.text import show_desc

FOLDER = Path(__file__).parents[2] / "golden" / "normalise"


@pytest.mark.parametrize("name", CASES)
def test_description_after_is_as_stored(name: str, request: pytest.FixtureRequest) -> None:
    case, path = CASES[name], FOLDER / f"{name}.txt"
    text = f"{show_desc(case.desc)}\n--\n{show_desc(case.run(case.desc))}\n"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text


def test_every_stored_text_has_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CASES)
