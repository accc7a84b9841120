"""Options, the flag grammar and the environment."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from pydantic import ValidationError

from graphkernel.errors import OptionError
from graphkernel.mindspore.flags import IdleFlags
from graphkernel.options import Environment, Options, flag_table


def test_defaults() -> None:
    options = Options()
    assert (options.opt_level, options.target, options.composite_op_limit_size) == (2, "cpu", 200)
    assert options.exact_precision_mode
    assert options.reduce_fuse_depth == -1


def test_options_are_frozen_and_hashable() -> None:
    assert hash(Options.parse("--opt_level=1")) == hash(Options(opt_level=1))
    with pytest.raises(ValidationError):
        Options().opt_level = 3


def test_grammar() -> None:
    options = Options.parse("--opt_level=+1   --dump_as_text --enable_pass=a,,b --exact_precision_mode=off")
    assert options == Options(opt_level=1, dump_as_text=True, enable_pass=("a", "b"), exact_precision_mode=False)


@pytest.mark.parametrize("text", ["true", "True", "on", "1"])
def test_true(text: str) -> None:
    assert Options.parse(f"--dump_as_text={text}").dump_as_text


@pytest.mark.parametrize("text", ["false", "False", "off", "0"])
def test_false(text: str) -> None:
    assert not Options.parse({"dump_as_text": text}).dump_as_text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--opt_lvel=1", "did you mean 'opt_level'"),
        ("--opt_level=high", "whole number"),
        ("--opt_level=-1", "greater than or equal to 0"),
        ("--dump_as_text=maybe", "true, on, 1 or false"),
        ("--target=tpu", "'cpu', 'gpu' or 'ascend'"),
        ("--enable_pass=,", "at least one name"),
        ("--opt_level", "flag --opt_level: a value is needed"),
        ("--a=b=c", "'--a=b=c' is not understood"),
        ("--=3", "not understood"),
        ("opt_level=1", "not understood"),
        ("--opt_level=", "not understood"),
        ("--path=/does/not/exist.json", "cannot read flags"),
        ("--path", "a file is needed: write --path=FILE.json"),
        ("--opt_level=1\n--dump_as_text", "not understood"),
        ("--OPT_LEVEL=1", "did you mean 'opt_level'"),
        ("--target=gpuu", "did you mean 'gpu'"),
        ("--kernel_generator=AGK", "did you mean 'AKG'"),
        ("--online_tuning=-1", "greater than or equal to 0"),
        ("--enable_auto_tensor_inplace --target=ascend", "no such pass for ascend"),
    ],
)
def test_mistakes_are_refused_with_what_to_do(flags: str, said: str) -> None:
    with pytest.raises(OptionError, match=said.replace("(", r"\(")):
        Options.parse(flags)


@pytest.mark.parametrize("flags", ["--opt_lvel=1", "--opt_level=high", "--a=b=c", "--path=/does/not/exist.json"])
def test_mistakes_in_the_environment_warn_and_leave_the_default(flags: str, caplog: pytest.LogCaptureFixture) -> None:
    options = Options.resolve(environment=Environment.read({"MS_DEV_GRAPH_KERNEL_FLAGS": f"{flags} --dump_as_text"}))
    assert options.opt_level == 2
    assert caplog.records


def test_the_first_of_a_repeated_flag_stays(caplog: pytest.LogCaptureFixture) -> None:
    assert Options.parse("--opt_level=1 --opt_level=3").opt_level == 1
    assert "repeated" in caplog.text


def test_levels_above_three_are_clamped(caplog: pytest.LogCaptureFixture) -> None:
    assert Options.parse("--opt_level=7").opt_level == 3
    assert "opt_level 7 is outside 0 to 3; 3 is used" in caplog.text


def test_path_is_the_only_source(tmp_path: Path) -> None:
    file = tmp_path / "flags.json"
    file.write_text(json.dumps({"opt_level": "1", "disable_pass": "a,b", "dump_as_text": "on"}))
    options = Options.parse(f"--enable_pass=x --path={file} --opt_level=3")
    assert options == Options(opt_level=1, disable_pass=("a", "b"), dump_as_text=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "cannot read flags from it"),
        ('{"opt_level": "1",', "cannot read flags from it"),
        ('["opt_level"]', "must hold one JSON object"),
        ('{"dump_as_text": true}', r'the value of \'dump_as_text\' must be a text, as in "dump_as_text": "true"'),
        ('{"disable_pass": ["a", "b"]}', '"disable_pass": "a,b"'),
        ('{"path": "y.json"}', "unknown flag 'path'"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused_or_left_out(
    content: str, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "flags.json"
    file.write_text(content)
    with pytest.raises(OptionError, match=said):
        Options.parse(f"--path={file}")
    assert Options.resolve(environment=Environment.read({"MS_DEV_GRAPH_KERNEL_FLAGS": f"--path={file}"})) == Options(
        mistakes="warn"
    )
    assert len(caplog.messages) == 1


def test_the_first_of_two_files_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = tmp_path / "x.json", tmp_path / "y.json"
    first.write_text('{"opt_level": "1"}')
    second.write_text('{"opt_level": "3"}')
    assert Options.parse(f"--path={first} --path={second}").opt_level == 1
    assert f"--path={second} is ignored" in caplog.text


def test_numbers_without_sign_wrap_in_the_environment_as_in_mindspore() -> None:
    options = Options.resolve(
        environment=Environment.read({"MS_DEV_GRAPH_KERNEL_FLAGS": "--opt_level=-1 --online_tuning=-1"})
    )
    assert (options.opt_level, options.online_tuning) == (3, 2**32 - 1)


def test_flags_that_follow_from_others() -> None:
    def value(name: str, flags: str) -> object:
        return Options.parse(flags).effective(name)

    assert [value("enable_stitch_fusion", f"--opt_level=3 --target={target}") for target in ("cpu", "gpu")] == [
        False, True
    ]  # fmt: skip
    assert value("enable_stitch_fusion", "--enable_stitch_fusion --opt_level=1") is True
    assert value("enable_recompute_fusion", "--enable_recompute_fusion=off") is False
    assert value("kernel_generator", "--target=ascend") == "DVM"
    assert value("enable_dynamic_shape_fusion", "--target=ascend") is True
    assert value("kernel_generator", "--enable_dynamic_shape_fusion --kernel_generator=DVM") == "AKG_V2"
    assert value("enable_auto_tensor_inplace", "--enable_auto_tensor_inplace") is True


def test_the_environment_replaces_the_flags_of_the_call() -> None:
    environment = Environment.read({"MS_DEV_GRAPH_KERNEL_FLAGS": "--opt_level=1"})
    options = Options.resolve("--dump_as_text --opt_level=3", environment=environment)
    assert (options.opt_level, options.dump_as_text, options.mistakes) == (1, False, "warn")
    assert Options.resolve("--opt_level=3", environment=Environment()).opt_level == 3


def test_an_empty_variable_counts_as_set() -> None:
    options = Options.resolve("--opt_level=3", environment=Environment(flags=""), base=Options(opt_level=1))
    assert options.opt_level == 1


def test_environment() -> None:
    found = Environment.read({"GRAPHKERNEL_DUMP_DIR": "d", "MS_DEV_DUMP_GRAPH_KERNEL_IR": "on", "OMP_NUM_THREADS": "1"})
    assert found == Environment(dump_dir="d", dump_ir=True, threads=1)
    options = Options.resolve(environment=found)
    assert (options.dump_dir, options.dump_as_text) == ("d", True)


@pytest.mark.parametrize(
    ("variables", "level"),
    [
        ({}, None),
        ({"GLOG_v": "1"}, logging.INFO),
        ({"GLOG_v": "9"}, logging.CRITICAL),
        ({"GLOG_v": "x"}, None),
        ({"GLOG_v": "1", "GRAPHKERNEL_LOG": "debug"}, logging.DEBUG),
    ],
)
def test_log_level(variables: dict[str, str], level: int | None) -> None:
    assert Environment.read(variables).log_level == level


def test_fusion_ops_level_depends_on_the_target() -> None:
    assert [Options.parse({"target": target}).ops_level for target in ("cpu", "gpu", "ascend")] == [1, 1, 0]
    assert Options(fusion_ops_level=2).ops_level == 2


def test_the_flag_table_tells_every_flag() -> None:
    table = {flag.name: flag for flag in flag_table()}
    assert table.keys() == Options.model_fields.keys()
    assert list(table)[-len(IdleFlags.model_fields) :] == list(IdleFlags.model_fields), "what has no effect stands last"
    assert all(flag.meaning for flag in table.values())
    assert (table["opt_level"].type, table["opt_level"].default) == ("int", "2")
    types = [table[name].type for name in ("target", "disable_pass", "fusion_ops_level")]
    assert types == ["cpu|gpu|ascend", "list", "int"]


def test_what_the_environment_overrules_is_told(caplog: pytest.LogCaptureFixture) -> None:
    seen = Environment(flags="--opt_level=1")
    Options.resolve("--disable_pass=2.3", environment=seen, base=Options.parse({"opt_level": 3}))
    assert "MS_DEV_GRAPH_KERNEL_FLAGS is set and wins: flags '--disable_pass=2.3' are ignored" in caplog.text
    assert "opt_level is 1, not 3" in caplog.text


def test_an_environment_that_agrees_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    Options.resolve(environment=Environment(flags="--opt_level=1"), base=Options.parse({"opt_level": 1}))
    assert not caplog.text


def test_the_log_shows_the_flags_that_are_not_the_default(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "graphkernel.options"):
        Options.resolve("--opt_level=3 --disable_cluster_ops=Mul,Add", environment=Environment())
        Options.resolve("--opt_level=0", environment=Environment())
    (line,) = caplog.messages
    start = "graph_kernel_flags = '--opt_level=3 --disable_cluster_ops=Mul,Add', flags that are not the default: "
    assert line.startswith(start)
    assert json.loads(line.removeprefix(start)) == {"opt_level": 3, "disable_cluster_ops": ["Mul", "Add"]}


def test_flags_without_effect_are_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    Options.parse("--opt_level=1 --online_tuning=1 --cpu_arch=arm --enable_pass=cse")
    assert caplog.messages == [
        "flags without effect here: --online_tuning (nothing is measured at compile time), --cpu_arch (as target_os)"
    ]
