"""``python -m tests.mindspore_reference DIR [--json OUT]``: compares this project with records of MindSpore."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphkernel.errors import GraphKernelError
from graphkernel.pipeline import steps_for
from tests.mindspore_reference.checks import Check, Outcome
from tests.mindspore_reference.flags import check_flags
from tests.mindspore_reference.nets import check_net, check_passes
from tests.mindspore_reference.rebuild import Record
from tests.mindspore_reference.settings import listening, options_of


@dataclass(frozen=True)
class Result:
    """The outcomes of one record."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """True when nothing failed; differences with a reason do not count."""
        return not any(outcome.is_failure for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "status": "passed" if self.passed else "failed",
            "failures": [str(outcome) for outcome in self.outcomes if outcome.is_failure],
            "deviations": [str(outcome) for outcome in self.outcomes if not outcome.is_failure],
        }


def check(record: Record, name: str) -> Result:
    """All checks that a record has something for."""
    with listening() as heard:
        options = options_of(record, heard)
        outcomes: list[Outcome] = []
        if record.get("graph"):
            try:
                outcomes += check_net(record, options)
            except GraphKernelError as error:
                outcomes.append(Outcome.failure(Check.RECORD, f"{type(error).__name__}: {error}"))
        elif record.get("passes"):
            outcomes += check_passes(record, steps_for(options))
    outcomes += check_flags(record, options, heard.messages)
    return Result(name, tuple(dict.fromkeys(outcomes)))


def records(folder: Path) -> Iterator[tuple[str, Record]]:
    """Every record below a folder, by name."""
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and "enable_graph_kernel_context" in content:
            yield str(path.relative_to(folder)), content


def main(arguments: list[str] | None = None) -> int:
    """Prints what differs; the last line counts. Exit code 1 when a record failed or there was none."""
    parser = argparse.ArgumentParser(prog="python -m tests.mindspore_reference", description=__doc__)
    parser.add_argument("folder", type=Path, help="records of nets or of flag runs, in it or in folders below")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write one entry per record")
    given = parser.parse_args(arguments)
    results = [check(record, name) for name, record in records(given.folder)]
    for result in results:
        for outcome in result.outcomes:
            print(f"{result.name}: {outcome}")
    if given.json is not None:
        given.json.write_text(json.dumps([result.to_json() for result in results], indent=1) + "\n", encoding="utf-8")
    failed = sum(not result.passed for result in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
