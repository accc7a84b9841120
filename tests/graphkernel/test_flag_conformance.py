"""The flags against what the real MindSpore made of 174 flag strings: the same values, and messages about the same tokens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphkernel.errors import OptionError
from graphkernel.options import Environment, Options
from graphkernel.pipeline import steps_for

REFERENCE = Path(__file__).parents[3] / "shared" / "mindspore_reference"
RECORDS = [json.loads(file.read_text()) for file in sorted((REFERENCE / "flag_runs").glob("*.json"))]
CRASHES = "MindSpore ends in an exception of its JSON library; here a message says what is wrong, and the defaults stay"
SILENT = "MindSpore says nothing"
VALUES_DIFFER: dict[str, str] = {
    "path_array": CRASHES,
    "path_broken_json": CRASHES,
    "path_empty_file": CRASHES,
    "path_missing": CRASHES,
    "path_no_value": CRASHES,
}
MESSAGES_DIFFER = {
    **VALUES_DIFFER,
    "grammar_generator_lower": f"{SILENT} of a generator that does not exist",
    "grammar_generator_unknown": f"{SILENT} of a generator that does not exist",
    "grammar_lowprec_removed": "the passes of low precision exist here",
    "grammar_parallel_combine": "the pass that combines operators exists here",
    "pass_disable_by_bare_name": "a bare name means every step of that pass here",
    "pass_disable_same_name_in_stages": "a bare name means every step of that pass here",
    "pass_enable_bare_name": "a bare name means every step of that pass here",
    "path_twice": f"{SILENT} of flags beside --path, which it ignores",
    "path_with_flags_after": f"{SILENT} of flags beside --path, which it ignores",
    "path_with_flags_before": f"{SILENT} of flags beside --path, which it ignores",
}
PASSES_DIFFER = {
    "pass_disable_by_bare_name": "a bare name means every step of that pass here",
    "pass_disable_same_name_in_stages": "a bare name means every step of that pass here",
    "pass_enable_bare_name": "a bare name means every step of that pass here",
}
SUBJECT = re.compile(
    r"the flag '(?P<a>.+)' in the|the flag (?P<b>\S+) in the|Unknown flag: =?-?(?P<c>\S+)|flag \"(?P<d>.+)\" is not valid"
    r"|(?P<e>Flags's value should be string)",
    re.DOTALL,
)
needs_the_reference = pytest.mark.skipif(not RECORDS, reason=f"no MindSpore reference at {REFERENCE}")


def options_of(record: dict[str, Any]) -> Options:
    """Our options for the record's sources: the environment, else JitConfig, else the context."""
    calls = re.search(r'JitConfig\(.*graph_kernel_flags="(.*?)"', record["source"]) or re.search(
        r'graph_kernel_flags="(.*?)"', record.get("context_calls") or ""
    )
    return Options.resolve(
        calls[1] if calls else None,
        environment=Environment(flags=record["flags"]),
        base=Options(opt_level=2 if record["enable_graph_kernel_context"] else 0),
    )


def subjects(record: dict[str, Any]) -> list[str]:
    """What the messages of MindSpore are about; its summary at the end of a list of unknown flags is about nothing new."""
    found = [SUBJECT.search(warning["message"]) for warning in record["warnings"]]
    return ["must be a text" if match["e"] else next(filter(None, match.groups())) for match in found if match]


@needs_the_reference
def test_the_same_flags_give_the_same_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    differing: dict[str, object] = {}
    for record in RECORDS:
        if "not_a_string" in record["run"]:
            continue  # an exception there and here
        for name, text in (record.get("files") or {}).items():
            (tmp_path / name).write_text(text)
        options = options_of(record)
        same = (options.opt_level > 0) == record["graph_kernel_enabled"]
        assert same != (record["run"] in VALUES_DIFFER), record["run"]
        expected: dict[str, object] = record["effective_flags"] or {}
        ours = {key: options.effective(key) for key in expected}
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in ours.items()}
        if plain != expected:
            differing[record["run"]] = {key: plain[key] for key in plain if plain[key] != expected[key]}
    assert differing == {}


@needs_the_reference
def test_every_flag_of_mindspore_exists() -> None:
    known = json.loads((REFERENCE / "flags_defaults.json").read_text())["opt_level=2"]
    assert len(known) == 49
    assert set(known) <= set(Options.model_fields)


@needs_the_reference
@pytest.mark.parametrize("level", [1, 2, 3])
def test_defaults_by_level(level: int) -> None:
    expected = json.loads((REFERENCE / "flags_defaults.json").read_text())[f"opt_level={level}"]
    found = {key: Options(opt_level=level).effective(key) for key in expected}
    assert {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()} == expected


@needs_the_reference
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["run"])
def test_messages_are_about_the_same_tokens(
    record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (record.get("files") or {}).items():
        (tmp_path / name).write_text(text)
    steps_for(options_of(record))
    ours = [entry.getMessage() for entry in caplog.records if "is set and wins" not in entry.getMessage()]
    theirs = subjects(record)
    unheard = [
        subject
        for subject in theirs
        if not any(subject in message.replace("\\n", "\n").replace("\\t", "\t") for message in ours)
    ]
    assert (bool(unheard) or len(ours) != len(theirs)) == (record["run"] in MESSAGES_DIFFER), (ours, theirs)


@needs_the_reference
@pytest.mark.parametrize("record", [r for r in RECORDS if r["passes"]], ids=lambda record: record["run"])
def test_the_same_passes_run(record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (record.get("files") or {}).items():
        (tmp_path / name).write_text(text)
    ours = {step.name: step.enabled for step in steps_for(options_of(record))}
    theirs = {name: state != "disabled" for name, state in map(str.split, record["passes"])}
    differing = {name for name, enabled in theirs.items() if ours.get(name) != enabled}
    assert bool(differing) == (record["run"] in PASSES_DIFFER), differing


def test_flags_of_a_wrong_type_are_refused() -> None:
    with pytest.raises(OptionError, match="flags are a text such as '--opt_level=2' or a mapping, not int"):
        Options.parse(2)  # pyright: ignore[reportArgumentType]
