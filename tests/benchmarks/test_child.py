"""What a measuring process tells, and what is said where it tells nothing."""

from __future__ import annotations

import pytest

from benchmarks.child import ChildError, told_by


def test_the_last_line_is_what_was_found() -> None:
    assert told_by(["-c", "print('warming up'); print([1, 2])"]) == [1, 2]
    assert told_by(["-c", "pass"]) == {}


def test_the_environment_is_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "1")
    assert told_by(["-c", "import os; print(os.environ['OUTER'] + os.environ['INNER'])"], {"INNER": "2"}) == 12


@pytest.mark.parametrize(("program", "said"), [
    ("raise ValueError('no such model')", "ValueError: no such model"),
    ("import os; os.abort()", "exit status -6"),
    ("import sys; sys.exit(3)", "exit status 3"),
])  # fmt: skip
def test_a_failure_is_told_in_a_line(program: str, said: str) -> None:
    with pytest.raises(ChildError, match=f"^{said}$"):
        told_by(["-c", program])


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(ChildError, match="not done after 1 s"):
        told_by(["-c", "import time; time.sleep(60)"], seconds=1)
