"""The table of steps, the flags that switch them, and the catalogue."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphkernel.conditions import dvm, flag, level, on
from graphkernel.declarations import Catalogue, builtin_catalogue, plugins, with_plugins
from graphkernel.errors import CatalogueError, OptionError, PassError
from graphkernel.frontends.trace import spec, trace
from graphkernel.mindspore.passes import FIRST_OF_OURS, IDLE_STEPS, REASONS, STAGES
from graphkernel.ops import Tensor
from graphkernel.options import Environment, Options
from graphkernel.passes.base import Context, Pass, Step, graph_pass, run_steps
from graphkernel.pipeline import FUSION_GROUP_STAGE, PIPELINE, WRITTEN_OUT_STAGE, steps_for
from kernelgen.tensor.graph import Graph
from tests.support.sources import FACTS

NAMES = FACTS / "mindspore_pass_names.txt"
ELSEWHERE = ("stage8_", "fusion_group_")  # not in a run on a CPU


def mynet(x: Tensor) -> Tensor:
    return x * 2.0 + 1.0


GRAPH = trace(mynet, spec((4, 4)))


def enabled(options: Options) -> list[str]:
    return [step.name for step in steps_for(options) if step.enabled]


def optimized(graph: Graph, options: Options) -> Graph:
    return run_steps(graph, steps_for(options), builtin_catalogue().context(options))


def test_the_table_is_in_the_order_of_the_stages_and_numbers_are_unique() -> None:
    steps = steps_for(Options())
    stages = [(WRITTEN_OUT_STAGE, FUSION_GROUP_STAGE, *STAGES).index(step.stage) for step in steps]
    assert stages == sorted(stages)
    assert len({(step.stage, step.number) for step in steps}) == len(steps) == len(PIPELINE) + len(IDLE_STEPS)
    assert all(step.why for step in steps)


def test_the_table_holds_only_passes_with_work_and_reasons_are_given_for_all_others() -> None:
    assert not [step for step in PIPELINE if step.pass_.absorbed]
    assert {idle.name for idle in IDLE_STEPS} == REASONS.keys()
    assert not REASONS.keys() & {step.pass_.name for step in PIPELINE}


def test_passes_without_work_stand_where_mindspore_runs_them_and_around_ours_where_they_say() -> None:
    steps = steps_for(Options())
    order = [step.number for step in steps if step.stage == "build"]
    assert order == [0, 1, 2, 3, 4, 21, 22, 24, 23, 25, 20, 5, 6, 7, 8]
    assert [step.number for step in steps if step.stage == "kernelpacket"] == [20, 0, 1]


def reference() -> dict[str, list[bool]]:
    """The pass names of MindSpore 2.10 in order, and whether each runs at level 1, 2, 3 on a CPU."""
    lines = [line.split() for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    return {name: [mark == "E" for mark in marks] for name, *marks in lines}


def test_stages_numbers_names_and_levels_are_those_of_mindspore() -> None:
    ours = {step.name: step.number for step in steps_for(Options())}
    numbered = [name for name, number in ours.items() if number < FIRST_OF_OURS and not name.startswith(ELSEWHERE)]
    assert numbered == list(reference())
    states = [{step.name: step.enabled for step in steps_for(Options(opt_level=level))} for level in (1, 2, 3)]
    assert {name: [state[name] for state in states] for name in reference()} == reference()


@pytest.mark.parametrize("flags", ["", " --kernel_generator=AKG"])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_dynamic_shape_flag_switches_the_four_steps_that_it_switches_in_mindspore(level: int, flags: str) -> None:
    """As MindSpore 2.10.0 logged it on a CPU, with and without the flag."""
    plain = Options.parse(f"--opt_level={level}{flags}")
    asked = Options.parse(f"--opt_level={level} --enable_dynamic_shape_fusion=true{flags}")
    states = [{step.name: step.enabled for step in steps_for(options)} for options in (plain, asked)]
    changed = {name: states[1][name] for name in states[0] if states[0][name] != states[1][name]}
    assert changed == {
        "stage6_build_1_reduce_fake_output_memory": False,
        "stage6_build_2_graph_kernel_cluster_for_dynshape": True,
        "stage6_build_3_symbol_engine_builder": True,
        "stage7_postprocess_3_set_infershape_funtor": True,
    }


@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend"])
def test_absorbed_passes_say_why_and_leave_graphs_alone(target: str) -> None:
    absorbed = [step for step in steps_for(Options.parse({"target": target})) if step.pass_.absorbed]
    assert len(absorbed) > 20
    for step in absorbed:
        assert step.pass_.doc
        assert step.pass_(GRAPH) is GRAPH


def test_conditions_say_what_they_ask() -> None:
    asked = on("gpu") & flag("enable_csr_fusion") | level(3)
    assert asked.text == "(gpu and enable_csr_fusion) or opt_level 3"
    assert (on("cpu", "gpu") & dvm).text == "(cpu or gpu) and kernel_generator DVM"
    given = ("--target=gpu", "--target=gpu --enable_csr_fusion", "--opt_level=3", "--enable_csr_fusion")
    assert [asked(Options.parse(flags)) for flags in given] == [False, True, True, False]


def test_every_pass_of_the_project_has_a_step() -> None:
    assert {entry.name for entry in builtin_catalogue().passes} == {step.pass_.name for step in PIPELINE}


def test_level_0_changes_nothing() -> None:
    assert enabled(Options(opt_level=0)) == []
    assert optimized(GRAPH, Options(opt_level=0)) is GRAPH


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_seeds_first_net_is_one_kernel(level: int) -> None:
    fused = optimized(GRAPH, Options(opt_level=level))
    assert [node.body is not None for node in fused.operators] == [True]


def test_levels_grow() -> None:
    by_level = [set(enabled(Options(opt_level=level))) for level in range(4)]
    assert by_level[0] < by_level[1] < by_level[2] <= by_level[3]
    assert "stage2_highlevelopt1_3_arithmetic_simplify" in by_level[2] - by_level[1]


@pytest.mark.parametrize("name", ["2.3", "highlevelopt1.arithmetic_simplify", "arithmetic_simplify"])
def test_passes_are_switched_by_number_by_stage_and_by_name(name: str) -> None:
    full = "stage2_highlevelopt1_3_arithmetic_simplify"
    assert full not in enabled(Options(disable_pass=(name,)))
    assert full in enabled(Options(opt_level=1, enable_pass=(name,)))
    assert full not in enabled(Options(opt_level=1, enable_pass=(name,), disable_pass=(name,)))


def test_a_bare_name_means_every_step_of_that_pass() -> None:
    assert not [name for name in enabled(Options(disable_pass=("graph_kernel_cse",))) if name.endswith("cse")]
    assert (
        len([name for name in enabled(Options(disable_pass=("split.graph_kernel_cse",))) if name.endswith("cse")]) == 2
    )


def test_a_name_that_is_no_step_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OptionError, match="did you mean 'arithmetic_simplify'"):
        steps_for(Options(disable_pass=("arithmetic_simplfy",)))
    steps_for(Options(disable_pass=("arithmetic_simplfy",), mistakes="warn"))
    assert 'graph kernel pass disable flag "arithmetic_simplfy" is not valid!' in caplog.text


@pytest.mark.parametrize(("flags", "said"), [
    ("--disable_pass=2.2", "off without it"),
    ("--disable_pass=2.3,highlevelopt1.arithmetic_simplify", "off without it"),
    ("--enable_pass=1.4", "on without it"),
    ("--enable_pass=2.3 --disable_pass=2.3 --opt_level=1", "disable_pass names it too, and wins"),
    ("--enable_pass=2.3 --opt_level=0", "At opt_level 0 no pass runs"),
])  # fmt: skip
def test_an_entry_without_effect_is_told(flags: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    steps_for(Options.parse(flags))
    assert len(caplog.messages) == 1
    assert "is not valid!" in caplog.text
    assert said in caplog.text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--disable_cluster_ops=Mull", "flag --disable_cluster_ops: there is no operator 'Mull' (did you mean 'Mul'?)"),
        ("--disable_packet_ops=reshape", "there is no operator 'reshape' (did you mean 'Reshape'?)"),
        ("--disable_expand_ops=Softmx", "flag --disable_expand_ops: there is no operator 'Softmx'"),
        ("--disable_fusion_pattern=redoce", "flag --disable_fusion_pattern: no pattern has 'redoce' in its name"),
    ],
)
def test_an_entry_of_a_list_that_names_nothing_is_told_at_once(
    flags: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(OptionError) as raised:
        steps_for(Options.parse(flags))
    assert said in str(raised.value)
    steps_for(Options.resolve(environment=Environment(flags=flags)))
    assert said in caplog.text


def test_entries_with_an_effect_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    steps_for(Options.parse("--disable_pass=2.3,eliminate_redundant_output --enable_pass=2.2"))
    assert caplog.messages == []


def test_the_fusion_group_runs_first_on_ascend_and_is_named_without_a_stage_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "graphkernel.passes")
    steps = [step for step in steps_for(Options.parse({"target": "ascend"})) if step.stage == FUSION_GROUP_STAGE]
    assert steps[0].name == "fusion_group_0_FlashAttentionFusionV1"
    assert (
        next(step for step in steps_for(Options.parse({"target": "ascend"})) if step.number < FIRST_OF_OURS) == steps[0]
    )
    assert all(step.enabled for step in steps)
    assert f"graph kernel passes: {','.join(step.pass_.name for step in steps)}." in caplog.messages
    name = "FlashAttentionFusionV1"
    assert f"fusion_group_0_{name}" not in enabled(Options(opt_level=3))
    assert f"fusion_group_0_{name}" in enabled(Options(enable_pass=(name,)))
    assert f"fusion_group_0_{name}" not in enabled(Options.parse({"target": "ascend", "disable_pass": name}))


def test_kernel_packets_follow_their_variable() -> None:
    packet = "stage8_kernelpacket_0_symbol_engine_extender"
    base = Options.parse({"target": "ascend"})

    def state(level: int, variable: str) -> bool:
        seen = Environment.read({"MS_DEV_ENABLE_KERNEL_PACKET": variable})
        return packet in enabled(Options.resolve(environment=seen, base=base.model_copy(update={"opt_level": level})))

    assert [state(level, variable) for level in (0, 2) for variable in ("", "on", "off")] == [
        False, True, False, True, True, False
    ]  # fmt: skip


def test_log_lines_are_those_of_mindspore(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "graphkernel.passes")
    optimized(GRAPH, Options(opt_level=1))
    text = caplog.text
    assert "graph kernel pass stage2_highlevelopt1_6_graph_kernel_cse is disabled." in text
    assert "graph kernel pass stage1_cluster_4_graph_kernel_cluster is enabled." in text
    for step in steps_for(Options.parse({"opt_level": 1})):
        idle = f"graph kernel pass {step.name} is not needed here: {step.pass_.doc}." in text
        assert idle == (step.enabled and step.pass_.absorbed)
        assert f"Run graph kernel pass {step.name} in" not in text or not step.pass_.absorbed
    assert "Run graph kernel pass stage1_cluster_4_graph_kernel_cluster in " in text
    assert "graph kernel pass stage1_cluster_4_graph_kernel_cluster changed." in text
    assert "graph kernel pass stage1_cluster_3_graph_kernel_expander changed." not in text


def test_a_failing_pass_is_named() -> None:
    @graph_pass
    def divides_by_zero(graph: Graph, context: Context) -> Graph:
        raise ZeroDivisionError("by zero")

    step = Step(divides_by_zero, "cluster", 1, level=1, why="")
    with pytest.raises(
        PassError, match=r"divides_by_zero failed on graph 'mynet': ZeroDivisionError: by zero"
    ) as caught:
        run_steps(GRAPH, (step,), Context())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_plugins_are_read_from_entry_points_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plug-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[graphkernel.plugins]\nzeta = plug_zeta\nalpha = plug_broken\n")
    (tmp_path / "plug_zeta.py").write_text(
        "from graphkernel.passes.base import Pass, Place\n"
        "mine = Pass('mine', lambda graph, context: graph, 'Mine.', Place('cluster.constant_folding'))\n"
    )
    (tmp_path / "plug_broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    broken, good = plugins()
    assert (broken.name, good.name) == ("alpha", "zeta")
    found = with_plugins(builtin_catalogue(), [good])
    assert "stage1_cluster_100_mine" in {step.name for step in steps_for(Options(), found)}
    with pytest.raises(
        CatalogueError, match=r"plugin 'alpha' \(plug_broken of plug\) cannot be used: division by zero"
    ):
        with_plugins(builtin_catalogue(), [broken])


PLUGIN = '''
from kernelgen.tensor.operators.elemwise import RECIPROCAL
from graphkernel.passes.base import graph_pass
from graphkernel.patterns.language import Rewrite, Safety, Term, rewrite, rule
from graphkernel.patterns.terms import reciprocal

@graph_pass(after="{after}", level=1, why="to be seen")
def renames_the_graph(graph, context):
    """Puts a mark on the name."""
    from dataclasses import replace
    return replace(graph, name=graph.name + "_seen")

@rule(safety=Safety.ROUNDING)
def reciprocal_twice(x: Term) -> Rewrite:
    return rewrite(reciprocal(reciprocal(x)), x)
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"plugin_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(PLUGIN.format(after=request.param))
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


@pytest.mark.parametrize("plugin", ["highlevelopt1.arithmetic_simplify"], indirect=True)
def test_a_package_adds_entries_and_places_its_passes(plugin: str) -> None:
    catalogue = builtin_catalogue().with_package(plugin)
    options = Options(opt_level=1)
    steps = steps_for(options, catalogue)
    names = [step.name for step in steps]
    at = names.index("stage2_highlevelopt1_100_renames_the_graph")
    assert names[at - 1] == "stage2_highlevelopt1_3_arithmetic_simplify"
    assert run_steps(GRAPH, steps, catalogue.context(options)).name == "mynet_seen"
    assert "reciprocal_twice" in {entry.name for entry in catalogue.rules}
    assert "reciprocal_twice" not in {entry.name for entry in builtin_catalogue().rules}


@pytest.mark.parametrize("plugin", ["highlevelopt1.arithmetic"], indirect=True)
def test_a_place_that_does_not_exist_is_refused(plugin: str) -> None:
    with pytest.raises(CatalogueError, match="no step"):
        steps_for(Options(), builtin_catalogue().with_package(plugin))


def test_a_taken_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "takes_a_name.py").write_text(
        "from graphkernel.passes.base import Pass\ncse = Pass('graph_kernel_cse', lambda graph, context: graph)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CatalogueError, match="'graph_kernel_cse', which exists already"):
        builtin_catalogue().with_package("takes_a_name")


def test_catalogues_are_values() -> None:
    assert builtin_catalogue() is builtin_catalogue()
    assert Catalogue().passes == ()
    assert all(isinstance(entry, Pass) for entry in builtin_catalogue().passes)


def test_a_pass_that_nothing_is_called_like_is_found_by_a_word_of_it() -> None:
    with pytest.raises(OptionError, match=r"not valid! \(did you mean 'split\.\w+'\?\)"):
        steps_for(Options(disable_pass=("stage3.split",)))


def test_the_steps_of_this_project_are_made_once() -> None:
    first, second = steps_for(Options()), steps_for(Options())
    assert all(one is other for one, other in zip(first, second, strict=True) if one.enabled)
    assert all(step.stage_number == STAGES.index(step.stage) for step in first if step.stage in STAGES)
