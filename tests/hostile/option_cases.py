"""Flags, flag files, plans, configuration files, and variables of the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import graphkernel as gk
import kernelgen
from graphkernel.cli.converting import read_config
from graphkernel.options import Environment, Options
from kernelgen.__main__ import read_plan
from tests.hostile.case import FINE, Case, files, special_files
from tests.hostile.composite_cases import document, nested

FLAGS, FLAG_FILE, PLAN, CONFIG, VARIABLE = "flags", "flag file", "plan", "configuration file", "environment"

BAD_FLAGS = {
    "an unknown flag": "--evil=1",
    "no flag at all": "evil",
    "a number of 10,000 digits": f"--opt_level={'1' * 10_000}",
    "a superscript as a number": "--online_tuning=²",
    "a switch that is neither": "--dump_as_text=evil",
    "a target that is a path": "--target=../../etc/passwd",
    "100,000 flags": "--evil " * 100_000,
    "a flag of controls": "--\x1b]0;evil\x07=1",
    "a pass that is not there": "--disable_pass=evil",
    "an operator that is not there": "--disable_expand_ops=__import__",
}

BAD_FLAG_FILES: Mapping[str, str | bytes] = {
    "an empty file": "",
    "no object": "[]",
    "nested 100,000 deep": '{"a":' * 100_000,
    "bytes that are no text": b"\xff\xfe\x00",
    "half of a surrogate pair": '{"opt_level": "\\ud800"}',
    "a value that is a list of lists": json.dumps({"opt_level": nested(30)}),
    "a number in place of a text": '{"opt_level": 1}',
    "a file that names itself": '{"path": "input.json"}',
    "20 million characters": '{"a": "' + "x" * 20_000_000 + '"}',
}

BAD_PLANS: Mapping[str, str | bytes] = {
    "an empty file": "",
    "a number": "7",
    "nested 100,000 deep": '{"a":' * 100_000,
    "unknown entries": '{"evil": 1}',
    "bytes that are no text": b"\xff",
    "a number of 5,000 digits": '{"version": ' + "1" * 5000 + "}",
}

BAD_CONFIGS: Mapping[str, str | bytes] = {
    "an empty file": "",
    "no sections": "opt_level=2\n",
    "another section": "[evil]\nopt_level=2\n",
    "a section twice": "[graph_kernel_param]\n[graph_kernel_param]\n",
    "bytes that are no text": b"[graph_kernel_param]\n\xff",
}

VARIABLES = {
    "a superscript as the number of threads": {"OMP_NUM_THREADS": "²"},
    "a number of threads of 10,000 digits": {"OMP_NUM_THREADS": "9" * 10_000},
    "minus one thread": {"OMP_NUM_THREADS": "-1"},
    "a superscript as the log level": {"GLOG_v": "²"},
    "a log level of 10,000 digits": {"GLOG_v": "9" * 10_000},
    "a log level that is a path": {"GRAPHKERNEL_LOG": "/etc/passwd"},
    "flags that are not there": {"MS_DEV_GRAPH_KERNEL_FLAGS": "--evil=1 evil --opt_level=² --path=/dev/zero"},
    "a dump folder that cannot be": {"GRAPHKERNEL_DUMP_DIR": "/proc/evil"},
}


def flags(text: str) -> Callable[[Path], object]:
    """Options from a text."""
    graph = "graph main(x: f32[4]) {\n  y: f32[4] = Neg(x)\n  return y\n}\n"
    return lambda folder: gk.optimize(gk.parse(graph), flags=text)


def flag_file(path: Path) -> object:
    """Options from a file."""
    return Options.parse(f"--path={path}")


def planned(path: Path) -> object:
    """A kernel after a plan."""
    return kernelgen.compile(kernelgen.load_desc(document()), "cpu", read_plan(path))


def in_environment(variables: Mapping[str, str]) -> Callable[[Path], object]:
    """A graph is compiled and run while the variables say so."""

    def run(folder: Path) -> None:
        import os

        graph = gk.parse("graph main(x: f32[4]) {\n  y: f32[4] = Exp(x)\n  return y\n}\n")
        before = dict(os.environ)
        os.environ.update(variables)
        try:
            (found,) = gk.compile(graph, 2)(np.zeros(4, np.float32))
            Environment.read()
        finally:
            os.environ.clear()
            os.environ.update(before)
        assert np.array_equal(found, np.ones(4))

    return run


CASES: tuple[Case, ...] = (
    *(Case(FLAGS, name, "OptionError", flags(text)) for name, text in BAD_FLAGS.items()),
    *files(FLAG_FILE, "OptionError", "input.json", flag_file, BAD_FLAG_FILES),
    *special_files(FLAG_FILE, "OptionError", ".json", flag_file),
    *files(PLAN, "ArgumentError", "input.json", planned, BAD_PLANS),
    *special_files(PLAN, "ArgumentError", ".json", planned),
    *files(CONFIG, "OptionError", "input.cfg", read_config, BAD_CONFIGS),
    *special_files(CONFIG, "OptionError", ".cfg", read_config),
    *(Case(VARIABLE, name, FINE, in_environment(variables)) for name, variables in VARIABLES.items()),
)
