"""How far a command is, on stderr: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from graphkernel.step_hooks import Progress
from kernelgen.system.escape import line

SILENCE = 10.0  # seconds after which a log hears that the command is alive


@contextmanager
def progress(what: str) -> Generator[Progress]:
    """A function ``tell(what, done, total)``; a total of 0 is unknown. What it drew is gone at the end."""
    if not sys.stderr.isatty():
        yield Lines(lambda text: print(text, file=sys.stderr, flush=True), time.monotonic)
        return
    from rich.console import Console  # only terminals need it
    from rich.markup import escape
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TimeElapsedColumn(), BarColumn(16), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(what), total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=escape(spelled(what, done, total)), completed=done, total=total or None)

        yield tell


@dataclass
class Lines:
    """Says at most every ten seconds what is being done."""

    say: Callable[[str], None]
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._said = self.clock()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Hears what is being done."""
        if self.clock() - self._said >= SILENCE:
            self._said = self.clock()
            self.say(spelled(what, done, total))


def spelled(what: str, done: int, total: int) -> str:
    """``compiling kernels, 3 of 52``; without figures where the total is unknown."""
    return line(f"{what}, {done} of {total}" if total else what)


def within(tell: Progress, of: str) -> Progress:
    """The same with words in front: of what this is a part."""
    return lambda what, done, total: tell(f"{of}: {what}", done, total)
