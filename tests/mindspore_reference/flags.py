"""The checks of the flags of a record: the same values, and messages about the same tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphkernel.options import GENERATORS, Options
from tests.mindspore_reference.checks import Check, Outcome
from tests.mindspore_reference.rebuild import Record

_TOKEN = re.compile(r"the flag '(.+)' in the parameter|the flag (\S+) in the parameter", re.DOTALL)
_UNKNOWN = re.compile(r"Unknown flag: (.+)", re.DOTALL)
_PASS = re.compile(r'flag "(.+)" is not valid', re.DOTALL)


def check_flags(record: Record, options: Options, messages: Sequence[str]) -> Iterator[Outcome]:
    """Every effective flag, whether the feature is on, and what is complained about."""
    yield from _values(record, options)
    yield from _complaints(record, options, messages)


def _values(record: Record, options: Options) -> Iterator[Outcome]:
    expected = record["effective_flags"]
    if expected is None and not record["ran_ok"]:
        yield Outcome.deviation(Check.FLAGS, "MindSpore ends in an exception; here a message says what is wrong")
        return
    if (options.opt_level > 0) != record["graph_kernel_enabled"]:
        yield Outcome.failure(
            Check.FLAGS, f"opt_level {options.opt_level}, there enabled={record['graph_kernel_enabled']}"
        )
    for key, value in (expected or {}).items():
        ours = options.effective(key) if key in Options.model_fields else "no such flag"
        ours = list(ours) if isinstance(ours, tuple) else ours
        if ours != value:
            yield Outcome.failure(Check.FLAGS, f"{key} is {ours!r}, there {value!r}")


def _complaints(record: Record, options: Options, messages: Sequence[str]) -> Iterator[Outcome]:
    left = list(messages)
    for subject in _subjects(record):
        found = next((message for message in left if subject in _as_written(message)), None)
        if found is not None:
            left.remove(found)
        elif _is_bare_pass(subject):
            yield Outcome.deviation(Check.MESSAGES, "a bare name means every step of that pass here")
        elif "enable_low_precision" in subject:
            yield Outcome.deviation(Check.MESSAGES, "the passes of low precision exist here")
        else:
            yield Outcome.failure(Check.MESSAGES, f"nothing is said about {subject!r}")
    for message in left:
        reason = _more_is_said(record, message)
        yield (
            Outcome.deviation(Check.MESSAGES, reason)
            if reason
            else Outcome.failure(Check.MESSAGES, f"only here: {message}")
        )


def _subjects(record: Record) -> Iterator[str]:
    """What each message there is about; the summary behind a list of unknown flags is about nothing new."""
    for warning in record["warnings"]:
        text = warning["message"]
        if match := _TOKEN.search(text):
            yield (match[1] or match[2]).strip("'")
        elif match := _UNKNOWN.search(text):
            yield match[1].strip("=-")
        elif match := _PASS.search(text):
            yield match[1]
        elif "value should be string" in text:
            yield "text"
        elif "get real path" in text:
            yield "--path"
        elif "JitConfig" in text:
            continue  # two ways to say the same exist there only


def _as_written(message: str) -> str:
    """A message with the white space that it shows as escapes."""
    return message.replace("\\n", "\n").replace("\\t", "\t")


def _is_bare_pass(subject: str) -> bool:
    return re.fullmatch(r"[a-z]\w*", subject) is not None


def _more_is_said(record: Record, message: str) -> str | None:
    """Why a message that MindSpore has not is right."""
    flags = record["flags"] or ""
    if "kernel_generator" in message and not any(f"={name} " in f"{flags} " for name in GENERATORS):
        return "MindSpore says nothing of a generator that does not exist"
    if "--path" in flags:
        return "MindSpore says nothing of flags beside --path, nor of a file that it cannot read"
    if "no expander" in message or "no operator" in message or "no rule" in message or "no pattern" in message:
        return "MindSpore says nothing of operators, rules and patterns that do not exist"
    if "is set and wins" in message:
        return "the context there and the variable agree on who wins; here the caller is told"
    return None
