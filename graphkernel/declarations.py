"""The catalogue of all that is declared, here and by installed plugins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from graphkernel.catalogue import collect
from graphkernel.cluster.area import FusionPattern
from graphkernel.decisions import DecisionLog
from graphkernel.errors import CatalogueError
from graphkernel.expanders.base import Expander
from graphkernel.gradients.base import Gradient
from graphkernel.options import Options
from graphkernel.passes.base import Context, Pass, Step
from graphkernel.patterns.language import Rule
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.operator import Operator

Entry = TypeVar("Entry", Operator, Rule, Expander, FusionPattern, Pass, Gradient)

PLUGINS = "graphkernel.plugins"


@dataclass(frozen=True)
class Catalogue:
    """All that is declared: operators, rules, expanders, fusion patterns, passes and gradients, in a fixed order."""

    ops: tuple[Operator, ...] = ()
    rules: tuple[Rule, ...] = ()
    expanders: tuple[Expander, ...] = ()
    fusion_patterns: tuple[FusionPattern, ...] = ()
    passes: tuple[Pass, ...] = ()
    packages: tuple[str, ...] = ()

    def with_package(self, *names: str) -> Catalogue:
        """The catalogue with what the modules of further packages declare; ``CatalogueError`` when a name is taken."""
        return replace(
            self,
            ops=_joined(self.ops, Operator, names),
            rules=_joined(self.rules, Rule, names),
            expanders=_joined(self.expanders, Expander, names),
            fusion_patterns=_joined(self.fusion_patterns, FusionPattern, names),
            passes=_joined(self.passes, Pass, names),
            packages=(*self.packages, *names),
        )

    @cached_property
    def gradients(self) -> tuple[Gradient, ...]:
        """The gradient rules of all packages, read when first asked for: most graphs are not differentiated."""
        return _joined((), Gradient, self.packages)

    @property
    def foreign_packages(self) -> tuple[str, ...]:
        """The packages that are no part of this project."""
        return tuple(name for name in self.packages if name.partition(".")[0] not in ("graphkernel", "kernelgen"))

    def context(self, options: Options, log: DecisionLog | None = None, steps: Iterable[Step] = ()) -> Context:
        """What passes are given: ``options``, declarations, a ``log``, and which of all ``steps`` are disabled."""
        expanders = {entry.name: entry for entry in self.expanders}
        log, disabled = DecisionLog() if log is None else log, frozenset(s.pass_.name for s in steps if not s.enabled)
        return Context(options, self.rules, expanders, self.fusion_patterns, log, disabled)


@cache
def builtin_catalogue() -> Catalogue:
    """What this project declares, and what the installed plugins do."""
    own = Catalogue(packages=("graphkernel.gradients",)).with_package(
        "kernelgen.tensor.operators",
        "graphkernel.ops",
        "graphkernel.patterns",
        "graphkernel.expanders",
        "graphkernel.passes",
    )
    return with_plugins(own, plugins())


def plugins() -> tuple[EntryPoint, ...]:
    """The entry points of the group ``graphkernel.plugins``, by name; each names a package or module to read."""
    return tuple(sorted(entry_points(group=PLUGINS), key=lambda plugin: (plugin.name, plugin.value)))


def with_plugins(catalogue: Catalogue, found: Iterable[EntryPoint]) -> Catalogue:
    """The catalogue with what plugins declare.

    Raises ``CatalogueError``, which names the plugin that cannot be read.
    """
    for plugin in found:
        try:
            catalogue = catalogue.with_package(plugin.module)
        except Exception as error:  # whatever a plugin does when it is imported
            origin = f" of {plugin.dist.name}" if plugin.dist is not None else ""
            raise CatalogueError(
                f"plugin {plugin.name!r} ({plugin.value}{origin}) cannot be used: {error}; mend or uninstall it"
            ) from error
    return catalogue


def _joined(present: tuple[Entry, ...], kind: type[Entry], packages: Iterable[str]) -> tuple[Entry, ...]:
    """The entries present and those of further packages; a value that is imported from elsewhere counts once."""
    found = {entry.name: entry for entry in present}
    for package in packages:
        for entry in collect(package, kind):
            if found.setdefault(entry.name, entry) is not entry:
                raise CatalogueError(
                    f"{package} declares the {kind.__name__} {entry.name!r}, which exists already; rename it"
                )
    return tuple(found.values())
