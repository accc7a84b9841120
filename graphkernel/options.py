"""Options: MindSpore's graph kernel flags as one frozen model, and the only reader of the environment.

A flag is one field of :class:`Options`; its parsing, its range check, ``flag_table`` and the documentation follow from it.
Source: ``GraphKernelFlags`` of MindSpore, and the grammar of ``MS_DEV_GRAPH_KERNEL_FLAGS``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphkernel.errors import OptionError
from graphkernel.flag_text import Complain, flag_value, tokens_of, warn, with_hint

MAX_LEVEL = 3
Names = tuple[str, ...]
Target = Literal["cpu", "gpu", "ascend"]
Numerics = Literal["strict", "fast"]
Mistakes = Literal["raise", "warn"]


class Options(BaseModel):
    """What the user asked for. Frozen and hashable; equal options give equal results."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    opt_level: int = Field(default=2, ge=0, le=MAX_LEVEL, description="0 off, 1 basic, 2 all stable, 3 experimental")
    target: Target = Field(default="cpu", description="what kernels are made for")
    numerics: Numerics = Field(default="strict", description="fast: rules may assume facts such as x >= 0")
    exact_precision_mode: bool = Field(default=True, description="true: no rule may change rounding, false: it may")
    dump_as_text: bool = Field(default=False, description="write graph_kernel_dump/ in the working folder")
    dump_dir: str = Field(default="", description="write the graph after every pass that changed it into this folder")
    enable_pass: Names = Field(default=(), description="passes to force on: stage.pass, numbers as 2.3, or pass")
    disable_pass: Names = Field(default=(), description="passes to switch off, same spelling; beats enable_pass")
    enable_expand_ops: Names = Field(default=(), description="operators to expand besides the target's list")
    enable_expand_ops_only: Names = Field(default=(), description="the only operators to expand")
    disable_expand_ops: Names = Field(default=(), description="operators not to expand")
    enable_cluster_ops: Names = Field(default=(), description="operators to fuse besides the target's list")
    enable_cluster_ops_only: Names = Field(default=(), description="the only operators to fuse")
    disable_cluster_ops: Names = Field(default=(), description="operators not to fuse")
    enable_fusion_pattern_only: Names = Field(default=(), description="the only patterns; part of a name matches")
    disable_fusion_pattern: Names = Field(default=(), description="fusion patterns not to use; part of a name matches")
    enable_simplify_exprs_only: Names = Field(default=(), description="the only rules to use, by rule name")
    disable_simplify_exprs: Names = Field(default=(), description="rules not to use, by rule name")
    composite_op_limit_size: int = Field(default=200, ge=1, description="most operators in one kernel")
    reduce_fuse_depth: int = Field(default=-1, description="most operators before a reduction; negative: by target")
    fusion_ops_level: int | None = Field(
        default=None, ge=0, le=2, description="operator lists; none: 0 on ascend, else 1"
    )
    mistakes: Mistakes = Field(default="raise", description="what a name that does not exist does")

    def complain(self, message: str) -> None:
        """Tells the user about a flag that names nothing known: raises :class:`OptionError`, or warns."""
        (warn if self.mistakes == "warn" else _refuse)(message)

    @property
    def ops_level(self) -> int:
        """``fusion_ops_level`` with the target's default filled in."""
        return self.fusion_ops_level if self.fusion_ops_level is not None else int(self.target != "ascend")

    @classmethod
    def parse(cls, flags: str | Mapping[str, object], base: Options | None = None) -> Options:
        """Options from a flag string (``"--opt_level=2 --dump_as_text"``) or a mapping, over ``base``.

        ``--path=FILE.json`` reads all flags from a JSON object instead. Levels above 3 and repeated keys only warn;
        an unknown key or a bad value raises :class:`OptionError` with the nearest valid name.
        """
        return cls._parse(flags, base or cls(), _refuse)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, base: Options | None = None) -> Options:
        """Options from ``MS_DEV_GRAPH_KERNEL_FLAGS``; what is wrong there warns and leaves the default."""
        return cls.resolve(environment=Environment.read(environ), base=base)

    @classmethod
    def resolve(
        cls,
        flags: str | Mapping[str, object] | None = None,
        *,
        environment: Environment | None = None,
        base: Options | None = None,
    ) -> Options:
        """The options in force: the environment variable, as soon as it is set, replaces ``flags``; both go over ``base``.

        What the caller asked for and does not get because of the variable is told by a warning.
        Source: the precedence of MindSpore, where the context switch only gives the default level (here ``base``).
        """
        seen = environment or Environment.read()
        start = base or cls()
        start = start.model_copy(update={"dump_dir": seen.dump_dir}) if seen.dump_dir and not start.dump_dir else start
        start = start.model_copy(update={"dump_as_text": True}) if seen.dump_ir else start
        if seen.flags is not None:
            found = cls._parse(seen.flags, start.model_copy(update={"mistakes": "warn"}), warn)
            _tell_replaced(flags, base, found)
            return found
        return start if flags is None else cls._parse(flags, start, _refuse)

    @classmethod
    def _parse(cls, flags: str | Mapping[str, object], base: Options, complain: Complain) -> Options:
        given = tokens_of(flags, complain) if isinstance(flags, str) else flags
        changes: dict[str, object] = {}
        for key, raw in given.items():
            if key not in cls.model_fields:
                complain(with_hint(f"unknown flag {key!r}", key, cls.model_fields))
                continue
            try:
                changes[key] = cls._value(key, raw)
            except ValueError as error:
                complain(f"flag --{key}{'' if raw is True else f'={raw}'}: {error}")
        return base.model_copy(update=changes)

    @classmethod
    def _value(cls, key: str, raw: object) -> object:
        value = flag_value(raw, cls.model_fields[key].annotation)
        if key == "opt_level" and isinstance(value, int) and value > MAX_LEVEL:
            warn(f"opt_level {value} is above {MAX_LEVEL}; {MAX_LEVEL} is used")
            value = MAX_LEVEL
        try:
            return getattr(cls.model_validate({key: value}), key)
        except ValidationError as error:
            raise ValueError(error.errors()[0]["msg"]) from error


@dataclass(frozen=True)
class Flag:
    """One row of the flag table."""

    name: str
    type: str
    default: str
    meaning: str


def flag_table() -> tuple[Flag, ...]:
    """Every flag with type, default and meaning, for the command line and the documentation."""
    return tuple(
        Flag(name, _type_name(field.annotation), _default_text(field.default), field.description or "")
        for name, field in Options.model_fields.items()
    )


@dataclass(frozen=True)
class Environment:
    """The environment variables that matter, read once and handed on as a value."""

    flags: str | None = None
    dump_dir: str = ""
    dump_ir: bool = False
    cache_dir: Path | None = None
    log_level: int = logging.WARNING
    threads: int | None = None

    @staticmethod
    def read(environ: Mapping[str, str] | None = None) -> Environment:
        """Reads MS_DEV_GRAPH_KERNEL_FLAGS, GRAPHKERNEL_DUMP_DIR, MS_DEV_DUMP_GRAPH_KERNEL_IR, GRAPHKERNEL_CACHE_DIR,
        GLOG_v (0 debug ... 4 critical), GRAPHKERNEL_LOG (a level name, which wins) and OMP_NUM_THREADS."""
        source = os.environ if environ is None else environ
        threads = source.get("OMP_NUM_THREADS", "")
        cache = source.get("GRAPHKERNEL_CACHE_DIR", "")
        return Environment(
            flags=source.get("MS_DEV_GRAPH_KERNEL_FLAGS"),
            dump_dir=source.get("GRAPHKERNEL_DUMP_DIR", ""),
            dump_ir=source.get("MS_DEV_DUMP_GRAPH_KERNEL_IR", "").lower() in ("on", "1", "true"),
            cache_dir=Path(cache) if cache else None,
            log_level=_log_level(source.get("GRAPHKERNEL_LOG", ""), source.get("GLOG_v", "")),
            threads=int(threads) if threads.isdigit() and int(threads) > 0 else None,
        )


def _log_level(name: str, glog: str) -> int:
    by_name = logging.getLevelNamesMapping()
    by_number = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    if name.upper() in by_name:
        return by_name[name.upper()]
    return by_number[min(int(glog), len(by_number) - 1)] if glog.isdigit() else logging.WARNING


def _tell_replaced(flags: str | Mapping[str, object] | None, base: Options | None, found: Options) -> None:
    """Warns of every argument that the environment variable overrules."""
    variable = "MS_DEV_GRAPH_KERNEL_FLAGS"
    if flags:
        warn(f"{variable} is set and wins: flags {flags!r} are ignored; unset it to use them")
    for name in ("opt_level", "target"):
        asked, got = getattr(base, name, None), getattr(found, name)
        if asked is not None and asked != got:
            warn(f"{variable} is set and wins: {name} is {got}, not {asked}")


def _refuse(message: str) -> None:
    raise OptionError(message)


def _type_name(annotation: object) -> str:
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    names = {bool: "bool", int: "int", int | None: "int", str: "text", Names: "list"}
    return next(text for known, text in names.items() if known == annotation)


def _default_text(default: object) -> str:
    return "" if default in ((), None) else str(default).lower() if isinstance(default, bool) else str(default)
