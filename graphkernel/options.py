"""Options: MindSpore's graph kernel flags as one frozen model, and the only reader of the environment.

A flag is one field of :class:`Options`; its parsing, its range check, ``flag_table`` and the documentation follow from it.
A field that is None takes its value from others (``opt_level``, ``target``): :meth:`Options.effective` fills it in.
Source: ``GraphKernelFlags`` of MindSpore, and the grammar of ``MS_DEV_GRAPH_KERNEL_FLAGS``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args, get_origin

from pydantic import ConfigDict, Field, ValidationError

from graphkernel.errors import OptionError, nearest
from graphkernel.mindspore.flag_text import LOGGER_NAME, Complain, flag_value, tokens_of, unsigned, warn, with_hint
from graphkernel.mindspore.flags import IDLE, IdleFlags
from graphkernel.system.environment import Environment as Environment
from kernelgen.system.cores import core_count as core_count

LOGGER = logging.getLogger(LOGGER_NAME)
MAX_LEVEL = 3
UNSIGNED = frozenset({"opt_level", "parallel_ops_level", "online_tuning", "cpu_refer_thread_num"})
GENERATORS = ("AKG", "AKG_V2", "AKG_MLIR", "DVM")
Names = tuple[str, ...]
Target = Literal["cpu", "gpu", "ascend"]
Numerics = Literal["strict", "fast"]
Mistakes = Literal["raise", "warn"]


class Options(IdleFlags):
    """What the user asked for, flags without effect included. Frozen and hashable; equal options give equal results."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    opt_level: int = Field(default=2, ge=0, le=MAX_LEVEL, description="0 off, 1 basic, 2 all stable, 3 experimental")
    target: Target = Field(default="cpu", description="what kernels are made for")
    numerics: Numerics = Field(default="strict", description="fast: rules may assume facts such as x >= 0")
    exact_precision_mode: bool = Field(default=True, description="true: no rule may change rounding, false: it may")
    enable_low_precision: bool = Field(default=False, description="move and compute in 16 bits where a kernel may")

    enable_pass: Names = Field(default=(), description="passes to force on: stage.pass, numbers as 2.3, or pass")
    disable_pass: Names = Field(default=(), description="passes to switch off, same spelling; beats enable_pass")
    enable_expand_ops: Names = Field(default=(), description="operators to expand besides the target's list")
    enable_expand_ops_only: Names = Field(default=(), description="the only operators to expand")
    disable_expand_ops: Names = Field(default=(), description="operators not to expand")
    enable_cluster_ops: Names = Field(default=(), description="operators to fuse besides the target's list")
    enable_cluster_ops_only: Names = Field(default=(), description="the only operators to fuse")
    disable_cluster_ops: Names = Field(default=(), description="operators not to fuse")
    enable_packet_ops_only: Names = Field(default=(), description="the only operators that start a kernel packet")
    disable_packet_ops: Names = Field(default=(), description="operators that start no kernel packet")
    enable_fusion_pattern_only: Names = Field(default=(), description="the only patterns; part of a name matches")
    disable_fusion_pattern: Names = Field(default=(), description="fusion patterns not to use; part of a name matches")
    enable_simplify_exprs_only: Names = Field(default=(), description="the only rules to use, by rule name")
    disable_simplify_exprs: Names = Field(default=(), description="rules not to use, by rule name")

    fusion_ops_level: int | None = Field(
        default=None, ge=0, le=2, description="how many levels of the operator lists count"
    )
    composite_op_limit_size: int = Field(default=200, description="most operators in one kernel; below 1 counts as 1")
    reduce_fuse_depth: int = Field(default=-1, description="most operators before a reduction; negative: by target")
    enable_recompute_fusion: bool | None = Field(
        default=None, description="a cheap value that two kernels need is computed in both"
    )
    enable_stitch_fusion: bool | None = Field(
        default=None, description="kernels joined behind a reduction through memory of the block"
    )
    enable_parallel_fusion: bool | None = Field(default=None, description="independent kernels side by side in one")
    parallel_ops_level: int = Field(
        default=0, ge=0, description="where parallel fusion looks: 0 around one value, 1 in the whole graph"
    )
    enable_horizontal_fusion: bool = Field(
        default=False, description="areas that read the same tensors join though neither feeds the other"
    )
    enable_parallel_op_combine: bool = Field(default=False, description="equal MatMuls of one operand become one")
    enable_csr_fusion: bool = Field(default=False, description="fuse sparse (CSR) operators")
    enable_dynamic_shape_fusion: bool | None = Field(
        default=None, description="chooses AKG_V2 off ascend; extents may be symbols in every kernel, asked or not"
    )
    enable_auto_tensor_inplace: bool = Field(default=False, description="write results over operands that end there")
    recompute_increment_threshold: int = Field(
        default=0, description="bytes that recomputing must save in the long run to be worth it; 0: no recomputing"
    )
    recompute_peak_threshold: int = Field(
        default=0, description="bytes that recomputing must save at the peak to be worth it; 0: no recomputing"
    )
    enable_kernel_packet: bool | None = Field(
        default=None,
        description="operators outside of kernels take small shape computations along, on ascend; "
        "MS_DEV_ENABLE_KERNEL_PACKET",
    )
    disable_matmul_post_fusion: bool = Field(default=False, description="nothing joins a matrix product behind it")
    enable_allreduce_prologue_fusion: bool = Field(default=True, description="what feeds an AllReduce may join it")
    enable_allreduce_epilogue_fusion: bool = Field(default=True, description="what uses an AllReduce may join it")

    kernel_generator: str | None = Field(
        default=None, description="whose passes and lists to follow: AKG, AKG_V2 or DVM; kernelgen makes all kernels"
    )
    enable_debug_mode: bool = Field(
        default=False,
        description="check plans and fill memory with NaN around its use; on a CUDA device wait after every step",
    )

    dump_as_text: bool = Field(default=False, description="write graph_kernel_dump/ in the working folder")
    dump_dir: str = Field(default="", description="write the graph after every pass that changed it into this folder")
    mistakes: Mistakes = Field(default="raise", description="what a name that does not exist does")

    def complain(self, message: str) -> None:
        """Tells the user about a flag that names nothing known: raises :class:`OptionError`, or warns."""
        (warn if self.mistakes == "warn" else refuse)(message)

    def effective(self, name: str) -> object:
        """A flag's value, filled in from the level and the target where it was not given."""
        return DERIVED[name].value(self) if name in DERIVED else getattr(self, name)

    def changes(self) -> str:
        """The flags that are not the default, as one line of JSON: what the log shows."""
        return self.model_dump_json(exclude_defaults=True)

    def is_on(self, name: str) -> bool:
        """True when the effective value of a switch is true, or that of a number above 0."""
        return cast("int", self.effective(name)) > 0

    @property
    def ops_level(self) -> int:
        """``fusion_ops_level`` with the target's default filled in."""
        return self.fusion_ops_level if self.fusion_ops_level is not None else int(self.target != "ascend")

    @property
    def generator(self) -> str:
        """``kernel_generator`` with its default; asking for dynamic shapes off Ascend means AKG_V2, as in MindSpore."""
        if self.enable_dynamic_shape_fusion and self.target != "ascend":
            return "AKG_V2"
        return self.kernel_generator or ("DVM" if self.target == "ascend" else "AKG")

    @classmethod
    def parse(cls, flags: str | Mapping[str, object], base: Options | None = None) -> Options:
        """Options from a flag string (``"--opt_level=2 --dump_as_text"``) or a mapping, over ``base``.

        ``--path=FILE.json`` reads all flags from a JSON object instead. Levels above 3 and repeated keys only warn;
        an unknown key or a bad value raises :class:`OptionError` with the nearest valid name.
        """
        return cls._parse(flags, base or cls())

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
        if seen.kernel_packet is not None:
            start = start.model_copy(update={"enable_kernel_packet": seen.kernel_packet})
        if seen.flags is not None:
            found = cls._parse(seen.flags, start.model_copy(update={"mistakes": "warn"}))
            _tell_replaced(flags, base, found)
        else:
            found = start if flags is None else cls._parse(flags, start)
        if found.opt_level > 0:
            given = flags if seen.flags is None else seen.flags
            LOGGER.info("graph_kernel_flags = %r, flags that are not the default: %s", given or "", found.changes())
        return found

    @classmethod
    def _parse(cls, flags: str | Mapping[str, object], base: Options) -> Options:
        complain = base.complain
        given = tokens_of(flags, complain) if isinstance(flags, str) else _mapping(flags)
        changes: dict[str, object] = {}
        for key, raw in given.items():
            if key not in cls.model_fields:
                complain(with_hint(f"unknown flag {key!r}", key, cls.model_fields))
                continue
            try:
                changes[key] = cls._value(key, raw, base.mistakes == "warn")
            except ValueError as error:
                complain(f"flag --{key}{'' if raw is True else f'={raw}'}: {error}")
        found = base.model_copy(update=changes)
        _check_together(found, changes.keys(), complain)
        _tell_idle(changes.keys())
        return found

    @classmethod
    def _value(cls, key: str, raw: object, wraps: bool) -> object:
        field = cls.model_fields[key]
        value = flag_value(raw, field.annotation)
        if wraps and isinstance(value, int) and key in UNSIGNED:
            value = unsigned(value)
        if key == "opt_level" and isinstance(value, int) and value > MAX_LEVEL:
            warn(f"opt_level {raw} is outside 0 to {MAX_LEVEL}; {MAX_LEVEL} is used")
            value = MAX_LEVEL
        try:
            return getattr(cls.model_validate({key: value}), key)
        except ValidationError as error:
            hint = nearest(str(value), get_args(field.annotation)) if get_origin(field.annotation) is Literal else ""
            raise ValueError(error.errors()[0]["msg"] + hint) from error


def _tell_idle(names: Iterable[str]) -> None:
    """Warns of flags that were given and change nothing here."""
    said = {name: IdleFlags.model_fields[name].description or "" for name in names if name in IdleFlags.model_fields}
    idle = [f"--{name} ({text.removeprefix(IDLE)})" for name, text in said.items()]
    if idle:
        warn(f"flags {IDLE.rstrip(': ')} here: {', '.join(idle)}")


def requested(opt_level: int, target: str) -> Options:
    """What the arguments of a function or a command say. Raises ``OptionError`` for a level that does not exist.

    As a flag a level above the last is the last, as in MindSpore: see :meth:`Options.parse`.
    """
    if type(opt_level) is not int or not 0 <= opt_level <= MAX_LEVEL:
        raise OptionError(f"opt_level is {opt_level!r}; 0 off, 1 basic fusion, 2 all stable passes, {MAX_LEVEL} more")
    return Options.parse({"opt_level": opt_level, "target": target})


def _mapping(flags: object) -> Mapping[str, object]:
    if isinstance(flags, Mapping):
        return cast("Mapping[str, object]", flags)
    raise OptionError(f"flags are a text such as '--opt_level=2' or a mapping, not {type(flags).__name__}")


@dataclass(frozen=True)
class Derived:
    """How a flag that was not given gets its value; ``text`` says it to the reader."""

    text: str
    value: Callable[[Options], object]


def _given_or(name: str, text: str, otherwise: Callable[[Options], object]) -> Derived:
    """The flag itself when it was given."""

    def value(options: Options) -> object:
        given = getattr(options, name)
        return otherwise(options) if given is None else given

    return Derived(text, value)


DERIVED: Mapping[str, Derived] = {
    "fusion_ops_level": Derived("0 on ascend, else 1", lambda options: options.ops_level),
    "enable_recompute_fusion": _given_or(
        "enable_recompute_fusion", "true from opt_level 2 on", lambda options: options.opt_level >= 2
    ),
    "enable_stitch_fusion": _given_or(
        "enable_stitch_fusion",
        "true at opt_level 3 on gpu",
        lambda options: options.opt_level >= 3 and options.target == "gpu",
    ),
    "enable_parallel_fusion": _given_or(
        "enable_parallel_fusion", "true at opt_level 3", lambda options: options.opt_level >= 3
    ),
    "enable_kernel_packet": _given_or(
        "enable_kernel_packet", "true from opt_level 1 on", lambda options: options.opt_level >= 1
    ),
    "enable_dynamic_shape_fusion": _given_or(
        "enable_dynamic_shape_fusion", "true with DVM", lambda options: options.generator == "DVM"
    ),
    "enable_auto_tensor_inplace": Derived(
        "false, on ascend always", lambda options: options.enable_auto_tensor_inplace and options.target != "ascend"
    ),
    "kernel_generator": Derived("DVM on ascend, else AKG", lambda options: options.generator),
}
"""The flags whose value depends on the level, the target or each other."""


@dataclass(frozen=True)
class Flag:
    """One row of the flag table."""

    name: str
    type: str
    default: str
    meaning: str


def flag_table() -> tuple[Flag, ...]:
    """Every flag with type, default (or what sets it) and meaning; those without effect stand last."""
    return tuple(
        Flag(
            name,
            _type_name(field.annotation),
            DERIVED[name].text if name in DERIVED else _default_text(field.default),
            field.description or "",
        )
        for name, field in sorted(Options.model_fields.items(), key=lambda entry: entry[0] in IdleFlags.model_fields)
    )


def _check_together(options: Options, given: Iterable[str], complain: Complain) -> None:
    """Tells of flags that other flags or the target make void."""
    if "enable_auto_tensor_inplace" in given and options.enable_auto_tensor_inplace and options.target == "ascend":
        complain("flag --enable_auto_tensor_inplace: there is no such pass for ascend; it stays off")
    generator = options.kernel_generator
    if "kernel_generator" in given and generator is not None and generator not in GENERATORS:
        complain(f"flag --kernel_generator={generator}: one of {', '.join(GENERATORS)}{nearest(generator, GENERATORS)}")


VARIABLES: Mapping[str, str] = {
    "MS_DEV_GRAPH_KERNEL_FLAGS": "flags; as soon as it is set, even to nothing, it replaces those of the call",
    "MS_DEV_DUMP_GRAPH_KERNEL_IR": "on: as --dump_as_text",
    "MS_DEV_ENABLE_KERNEL_PACKET": "on or off: as --enable_kernel_packet",
    "GLOG_v": "what is logged to stderr: 0 debug, 1 info (each pass), 2 warnings, 3 errors, 4 nearly nothing",
    "GRAPHKERNEL_LOG": "the same by name, such as info; wins over GLOG_v",
    "GRAPHKERNEL_DUMP_DIR": "as --dump_dir",
    "GRAPHKERNEL_CACHE_DIR": "where compiled kernels are kept",
    "GRAPHKERNEL_SHARED_CACHE": "a URL that fsspec knows: what one machine compiled, the others load from there",
    "GRAPHKERNEL_SHARED_CACHE_KEY": "what its entries are signed with: 16 characters or more, known to its users alone",
    "GRAPHKERNEL_ISOLATE_COMPILER": "on: LLVM runs in a process of its own; a kernel that it dies of runs on the host",
    "GRAPHKERNEL_CPU": "x86-64, -v2, -v3 or -v4: kernels are made for processors of that level, not for the very one at hand",
    "OMP_NUM_THREADS": "how many threads a kernel may use; at most the processors that this process may use",
}
"""What the environment may say; :class:`Environment` reads it."""


def _tell_replaced(flags: str | Mapping[str, object] | None, base: Options | None, found: Options) -> None:
    """Warns of every argument that the environment variable overrules."""
    variable = "MS_DEV_GRAPH_KERNEL_FLAGS"
    if flags:
        warn(f"{variable} is set and wins: flags {flags!r} are ignored; unset it to use them")
    for name in ("opt_level", "target"):
        asked, got = getattr(base, name, None), getattr(found, name)
        if asked is not None and asked != got:
            warn(f"{variable} is set and wins: {name} is {got}, not {asked}")


def refuse(message: str) -> None:
    """Raises ``OptionError``: how mistakes of the call are told."""
    raise OptionError(message)


def _type_name(annotation: object) -> str:
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    names = {
        bool: "bool", bool | None: "bool", int: "int", int | None: "int", str: "text", str | None: "text", Names: "list"
    }  # fmt: skip
    return next(text for known, text in names.items() if known == annotation)


def _default_text(default: object) -> str:
    return "" if default in ((), None) else str(default).lower() if isinstance(default, bool) else str(default)
