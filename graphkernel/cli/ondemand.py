"""The commands by name, with the file that has each: it is imported when a command is called, and not for a page of help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


@dataclass(frozen=True)
class Entry:
    """The file of a command, and the line of help that it has in the list."""

    file: str
    told: str


COMMANDS: Mapping[str, Entry] = {
    "run": Entry("running", "Run a model and compare its results."),
    "optimize": Entry("compiling", "Fuse a model and write the result."),
    "build": Entry("packaging", "Compile a model into a package for this machine."),
    "explain": Entry("compiling", "What was fused, what was not, and why."),
    "report": Entry("compiling", "The kernels of a model and what runs elsewhere."),
    "bench": Entry("measuring", "Time a model: onnxruntime, unfused, fused."),
    "profile": Entry("measuring", "Where the time of a model goes."),
    "tune": Entry("tuning", "Look for faster plans of a model's kernels by measuring."),
    "check": Entry("checking", "Hold every step of the optimizer to the numbers."),
    "bisect": Entry("checking", "Find the step or kernel that makes results wrong."),
    "convert": Entry("converting", "Fuse a model as MindSpore Lite's converter does."),
    "doctor": Entry("doctor", "What is installed, and the settings in force."),
    "cache": Entry("caching", "Compiled kernels on disk: ls, verify, prune, path."),
    "passes": Entry("catalogues", "The steps of the optimizer, in order."),
    "ops": Entry("catalogues", "The operators."),
    "patterns": Entry("catalogues", "The fusion patterns and the rewriting rules."),
    "expanders": Entry("catalogues", "The operators that basic ones replace."),
    "flags": Entry("catalogues", "The graph kernel flags."),
}
"""In the order in which help lists them."""


class OnDemand(TyperGroup):
    """A group that knows names and lines of help; the command itself comes from its file when it is called."""

    def __init__(self, **settings: Any) -> None:  # typer's
        super().__init__(**settings)
        self.imported = dict(self.commands)
        self.commands = {name: TyperCommand(name, help=entry.told) for name, entry in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:  # typer's
        """The name, the command, and what stands behind it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, imported(str(name)), rest


def imported(name: str) -> Any:  # typer's command
    """The command as its file declares it."""
    import_module(f"graphkernel.cli.{COMMANDS[name].file}")
    group = get_group(import_module("graphkernel.cli.base").app)
    assert isinstance(group, OnDemand), "the application is made with cls=OnDemand"
    return group.imported[name]
