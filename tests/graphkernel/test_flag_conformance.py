"""The flags against MindSpore's own list: all of them exist, with the same defaults at every level.

What MindSpore makes of single flag strings is checked record by record: ``tests.mindspore_reference``.
"""

from __future__ import annotations

import json

import pytest

from graphkernel.errors import OptionError
from graphkernel.options import Options
from tests.support.sources import FACTS

DEFAULTS = json.loads((FACTS / "mindspore_flag_defaults.json").read_text())


def test_every_flag_of_mindspore_exists() -> None:
    known = DEFAULTS["opt_level=2"]
    assert len(known) == 49
    assert set(known) <= set(Options.model_fields)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_defaults_by_level(level: int) -> None:
    expected = DEFAULTS[f"opt_level={level}"]
    found = {key: Options(opt_level=level).effective(key) for key in expected}
    assert {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()} == expected


def test_flags_of_a_wrong_type_are_refused() -> None:
    with pytest.raises(OptionError, match="flags are a text such as '--opt_level=2' or a mapping, not int"):
        Options.parse(2)  # pyright: ignore[reportArgumentType]
