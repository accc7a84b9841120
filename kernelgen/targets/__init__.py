"""Back ends, the only room that imports llvmlite: base (what a target is), entries (what
loaded kernels can do), coefficients (of polynomials that targets share),
python (the reference), cpu (LLVM), gpu (CUDA C through NVRTC, on a device or in a PTX interpreter), ascend (AscendC, read
back and simulated).

A target is a module (or package) here that defines ``TARGET``; a third party's is named by its dotted module name. A machine
of the target's family may stand behind a colon: ``ascend:910A``, ``gpu:sm_86``, ``gpu:hip``.
"""

from __future__ import annotations

import importlib
import pkgutil

from kernelgen.errors import BackendUnavailable
from kernelgen.targets.base import Entry, Target

NO_TARGETS = ("base", "coefficients", "entries")

__all__ = ["Entry", "Target", "find_target", "target_names"]


def target_names() -> tuple[str, ...]:
    """The names of the targets in this directory."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in NO_TARGETS))


def find_target(name: str | Target) -> Target:
    """The target of that name; a dotted name is imported. Raises BackendUnavailable with the known names."""
    if isinstance(name, Target):
        return name
    name, colon, machine = name.partition(":")
    found = _named(name)
    if not colon:
        return found if found.at_hand is None else found.at_hand()
    if found.variant is None:
        raise BackendUnavailable(f"target {name!r} has one machine only; {machine!r} is named behind the colon")
    return found.variant(machine)


def _named(name: str) -> Target:
    is_own = "." not in name
    module_name = f"{__name__}.{name}" if is_own else name
    try:
        found = getattr(importlib.import_module(module_name), "TARGET", None)
    except ModuleNotFoundError as error:
        if is_own and error.name == module_name:
            raise _unknown(name) from None
        raise BackendUnavailable(f"target {name!r}: {error}") from error
    if isinstance(found, Target):
        return found
    if is_own:
        raise _unknown(name)
    raise BackendUnavailable(f"module {module_name} defines no TARGET of class kernelgen.targets.Target")


def _unknown(name: str) -> BackendUnavailable:
    return BackendUnavailable(f"unknown target {name!r}; known: {', '.join(target_names())}, or a dotted module name")
