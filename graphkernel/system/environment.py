"""What the environment says, read once and handed on as a value. Light: what runs without an optimizer asks too."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from graphkernel.errors import OptionError
from kernelgen.system.cores import thread_count
from kernelgen.system.named_tuples import NamedTuple


class Environment(NamedTuple):
    """The environment variables that matter, read once and handed on as a value."""

    flags: str | None = None
    dump_dir: str = ""
    dump_ir: bool = False
    kernel_packet: bool | None = None
    log_level: int | None = None
    threads: int | None = None

    @staticmethod
    def read(environ: Mapping[str, str] | None = None) -> Environment:
        """Reads what VARIABLES lists."""
        source = os.environ if environ is None else environ
        return Environment(
            flags=source.get("MS_DEV_GRAPH_KERNEL_FLAGS"),
            dump_dir=source.get("GRAPHKERNEL_DUMP_DIR", ""),
            dump_ir=source.get("MS_DEV_DUMP_GRAPH_KERNEL_IR", "").lower() in ("on", "1", "true"),
            kernel_packet={"on": True, "off": False}.get(source.get("MS_DEV_ENABLE_KERNEL_PACKET", "")),
            log_level=_log_level(source.get("GRAPHKERNEL_LOG", ""), source.get("GLOG_v", "")),
            threads=thread_count(source),
        )


def check_threads(threads: int | None) -> int | None:
    """The number of threads. Raises ``OptionError`` for one below 1."""
    if threads is not None and (isinstance(threads, bool) or threads < 1):
        raise OptionError(f"threads={threads}: a call runs on one thread at least")
    return threads


def _log_level(name: str, glog: str) -> int | None:
    """The level that the user asks for; None when neither variable says one."""
    if not (name or glog):
        return None
    import logging  # nobody asks in most processes

    by_name = logging.getLevelNamesMapping()
    by_number = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    if name.upper() in by_name:
        return by_name[name.upper()]
    number = _whole(glog)
    return None if number is None else by_number[min(number, len(by_number) - 1)]


def _whole(text: str) -> int | None:
    """A number of a few decimal digits, as every tool writes it; None for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
