"""Compiling many kernels over a farm: bytes to bytes. What stays is in the caches of the workers, a shared one above all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelgen import options
from kernelgen.composite.user_operators import operators_in
from kernelgen.driver import compile
from kernelgen.errors import DescError, KernelgenError
from kernelgen.farm import Crew, answers, call
from kernelgen.farm.sandbox import TaskError, told
from kernelgen.system.answering import Limit, ProcessDied, ProcessLate
from kernelgen.system.bounded_io import read_text
from kernelgen.verify.verify_one import described_in

LIMIT = Limit(600.0)


def compile_files(paths: Sequence[Path], target: str, operators: Sequence[str], crew: Crew) -> Iterator[dict[str, Any]]:
    """A row for each file of ``paths`` that the ``crew`` compiled for a ``target``, as they come; ``operators`` are modules of
    users whose operators the files may hold. Raises DescError for a file that cannot be read.
    """
    requests = ((path.name, _request(path, target, operators)) for path in paths)
    for _, row in answers(compiled, requests, crew):
        yield row


def _request(path: Path, target: str, operators: Sequence[str]) -> bytes:
    asked = {"name": path.name, "text": read_text(path, DescError), "target": target, "operators": list(operators)}
    return json.dumps(asked).encode()


def compiled(request: bytes) -> bytes:
    """The reply to a request: a row, also where the process that compiles dies or never ends."""
    try:
        return call("kernelgen.compilation:compiled_here", request, LIMIT)
    except (ProcessDied, ProcessLate, TaskError) as error:
        message = str(error) or f"not finished after {LIMIT.seconds:g} s"
        return told({"name": json.loads(request)["name"], "status": "refused", "message": message})


def compiled_here(request: bytes) -> bytes:
    """The row of a request, as JSON, in a process that may die of it."""
    asked = json.loads(request)
    options.limit_threads(1)
    try:
        kernel = compile(described_in(asked["text"], operators_in(asked["operators"])), asked["target"])
        row = {"status": "compiled", "milliseconds": dict(kernel.resources.milliseconds)}
    except KernelgenError as error:
        row = {"status": "refused", "message": str(error)}
    return json.dumps({"name": asked["name"], **row}).encode()
