import copy
import json
from random import Random

import kernel_examples
import pytest

from kernelgen.composite.description import number_of
from kernelgen.composite.read import load_desc
from kernelgen.composite.write import dump_desc
from kernelgen.errors import DescError
from kernelgen.tensor.dims import sym
from tests.random_kernels.generate import kernel as random_kernel


def tensor(name, shape, data_type="float32", **more):
    return {"tensor_name": name, "shape": list(shape), "data_type": data_type, "format": "DefaultFormat", **more}


def op(name, inputs, output, attrs=None):
    attr = [{"name": k, "value": v, "data_type": type(v).__name__} for k, v in (attrs or {}).items()] or None
    return {"name": name, "attr": attr, "input_desc": [[t] for t in inputs], "output_desc": [output]}


def document(ops, inputs, outputs, **more):
    inputs = [[t] for t in inputs]
    return {
        "composite": True,
        "op": "k",
        "process": "cpu",
        "input_desc": inputs,
        "op_desc": ops,
        "output_desc": outputs,
    } | more


@pytest.fixture
def mul_add():
    x, b, t, y = tensor("x", [64, 128]), tensor("b", [128]), tensor("t", [64, 128]), tensor("y", [64, 128])
    half = tensor("c", [1], value=0.5)
    written = document([op("Mul", [x, half], t), op("TensorAdd", [t, b], y)], [x, b], [y])
    return json.loads(json.dumps(written))  # no two mentions of a tensor are one object


def test_reads_a_kernel(mul_add):
    desc = load_desc(mul_add)
    assert [o.op.name for o in desc.operators] == ["Mul", "Add"]
    assert number_of(desc.operators[0].args[1]) == 0.5
    assert desc.inputs[1].shape == (128,)
    assert desc.outputs[0].name == "y"


def test_reads_text_and_files_alike(mul_add, tmp_path):
    path = tmp_path / "k.info"
    path.write_text(json.dumps(mul_add))
    assert load_desc(path) == load_desc(str(path)) == load_desc(json.dumps(mul_add)) == load_desc(mul_add)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda d: d.update(version=3), "$.version"),
        (lambda d: d.update(composite=False), "$.composite"),
        (lambda d: d.pop("op"), "$.op"),
        (lambda d: d["op_desc"][1]["input_desc"][0][0].update(shape=["a"]), "$.op_desc[1].input_desc[0][0].shape[0]"),
        (lambda d: d["op_desc"][1]["input_desc"][0][0].update(shape=[-2]), "$.op_desc[1].input_desc[0][0].shape[0]"),
        (lambda d: d["op_desc"][1]["output_desc"][0].pop("shape"), "$.op_desc[1].output_desc[0].shape"),
        (lambda d: d["op_desc"][0]["output_desc"][0].update(data_type="float31"), "$.op_desc[0].output_desc[0].data_type"),
        (lambda d: d["op_desc"][0]["input_desc"][1][0].update(shape=[2]), "$.op_desc[0].input_desc[1][0].value"),
        (lambda d: d["op_desc"][0]["input_desc"][1][0].update(value="x"), "$.op_desc[0].input_desc[1][0].value"),
        (lambda d: d["input_desc"][0].append(tensor("z", [1])), "$.input_desc[0]"),
        (lambda d: d["op_desc"][0].update(attr=3), "$.op_desc[0].attr"),
        (lambda d: d["op_desc"][0].update(output_desc=[]), "$.op_desc[0].output_desc"),
        (lambda d: d.update(op_desc={}), "$.op_desc"),
        (lambda d: d.update(parallel_fusion={"fusion_type": "block_fusion", "sub_graph": [["nobody"]]}),
         "$.parallel_fusion.sub_graph[0][0]"),
    ],
)  # fmt: skip
def test_bad_input_names_its_path(mul_add, change, path):
    change(mul_add)
    with pytest.raises(DescError) as caught:
        load_desc(mul_add)
    assert caught.value.path == path


def test_broken_text_names_line_and_column():
    with pytest.raises(DescError, match="line 2, column 1"):
        load_desc('{"op": 1,\n]')


def test_constant_operands_become_attributes():
    x, y = tensor("x", [2, 3]), tensor("y", [2])
    axis = tensor("a", [1], "int64", value=1)
    desc = load_desc(document([op("ReduceSum", [x, axis], y, {"keep_dims": False})], [x], [y], version=2))
    assert len(desc.operators[0].args) == 1
    assert desc.operators[0].attrs.ints("axis") == (1,)


def test_type_ids_become_names():
    x, y = tensor("x", [2]), tensor("y", [2], "float16")
    desc = load_desc(document([op("Cast", [x, tensor("c", [1], "int64", value=42)], y)], [x], [y], version=2))
    assert desc.operators[0].attrs.str("dst_type") == "float16"


def test_unknown_type_id_is_refused():
    x, y = tensor("x", [2]), tensor("y", [2], "float16")
    with pytest.raises(DescError, match="MindSpore type id") as caught:
        load_desc(document([op("Cast", [x, tensor("c", [1], "int64", value=7)], y)], [x], [y], version=2))
    assert caught.value.path == "$.op_desc[0].input_desc[1][0].value"


def test_uninitialised_shape_operand_is_dropped():
    x, y = tensor("x", [2, 3]), tensor("y", [6])
    junk = tensor("s", [0], "int64", value=94862347)
    desc = load_desc(document([op("Reshape", [x, junk], y)], [x], [y], version=2))
    assert desc.operators[0].args == desc.graph.inputs
    assert "shape" not in desc.operators[0].attrs


def test_list_constants_become_attributes():
    x, y = tensor("x", [2, 3]), tensor("y", [3, 2])
    perm = tensor("p", [2], "int64", value=[1, 0])
    desc = load_desc(document([op("Transpose", [x, perm], y)], [x], [y], version=2))
    assert desc.operators[0].attrs.ints("perm") == (1, 0)


def test_one_hot_of_three_operands_keeps_its_data():
    ids, y = tensor("i", [3], "int32"), tensor("y", [3, 4])
    on, off = tensor("on", [1], value=1.0), tensor("off", [1], value=0.0)
    desc = load_desc(document([op("OneHot", [ids, on, off], y, {"depth": 4, "axis": -1})], [ids], [y]))
    assert [t.name for t in desc.operators[0].args] == ["i", "on", "off"]


def test_variadic_groups_are_flattened(mul_add):
    mul_add["op_desc"][0]["input_desc"] = [[t for group in mul_add["op_desc"][0]["input_desc"] for t in group]]
    assert len(load_desc(mul_add).operators[0].args) == 2


def test_scalar_written_in_two_ways_gets_the_first_shape():
    x, y = tensor("x", [1]), tensor("y", [])
    desc = load_desc(document([op("Neg", [tensor("x", [])], tensor("y", [1]))], [x], [y]))
    assert desc.operators[0].args[0].shape == (1,)
    assert desc.outputs[0].shape == (1,)


def test_old_keys_move_to_target_info(mul_add):
    mul_add["compute_capability"] = "7.0"
    assert load_desc(mul_add).target_info.str("compute_capability") == "7.0"


def test_meaningless_attributes_are_dropped(mul_add):
    mul_add["op_desc"][0]["attr"] = [{"name": "visited", "value": True, "data_type": "bool"}]
    assert not load_desc(mul_add).operators[0].attrs


def test_missing_inputs_are_none():
    y = tensor("y", [4])
    loaded = load_desc(document([op("BroadcastTo", [tensor("c", [1], value=0.0)], y)], [], [y]) | {"input_desc": None})
    assert loaded.inputs == ()


def test_unknown_extents_get_symbols():
    x, b = tensor("x", [32, -1, -1]), tensor("b", [-1, 1])
    t, y = tensor("t", [32, -1, -1]), tensor("y", [32, -1])
    ops = [op("Add", [x, b], t), op("ReduceSum", [t], y, {"axis": [2], "keep_dims": False})]
    desc = load_desc(document(ops, [x, b], [y]))
    assert [t.shape for t in desc.inputs] == [(32, sym("s0"), sym("s1")), (sym("s0"), 1)]
    assert desc.outputs[0].shape == (32, sym("s0"))


def test_unknown_extents_take_known_ones():
    x, b, y = tensor("x", [-1, 8]), tensor("b", [-1]), tensor("y", [-1, -1])
    desc = load_desc(document([op("Add", [x, b], y)], [x, b], [y]))
    assert desc.outputs[0].shape == (sym("s0"), 8)
    assert desc.inputs[1].shape == (8,)


def test_symbolic_shapes_are_read_with_their_expressions():
    x = tensor("x", [-1, 4], symbolic_shape=["n", "4"])
    y = tensor("y", [-1], symbolic_shape=["m"])
    desc = load_desc(document([op("Reshape", [x], y)], [x], [y], symbol_calc_expr={"m": "4*n"}))
    assert desc.outputs[0].shape == (4 * sym("n"),)


def test_dummy_results_of_assignments_are_no_outputs():
    p, new, dummy = tensor("p", [16, 16]), tensor("new", [16, 16]), tensor("d", [1])
    fresh = tensor("f", [16, 16])
    desc = load_desc(document([op("Neg", [new], fresh), op("Assign", [p, fresh], dummy)], [p, new], [dummy]))
    assert desc.outputs == ()
    assert desc.updated_inputs == (0,)
    assert desc.operators[1].out.shape == (16, 16)


EXAMPLES = [
    kernel_examples.softmax(), kernel_examples.softmax(sym("N")), kernel_examples.layer_norm(), kernel_examples.momentum(),
    kernel_examples.half_sum(), kernel_examples.empty_sum(), kernel_examples.split_reshape(sym("N")),
]  # fmt: skip


@pytest.mark.parametrize("desc", EXAMPLES, ids=lambda desc: desc.name)
def test_what_is_dumped_loads_back_equal(desc):
    assert load_desc(json.dumps(dump_desc(desc))) == desc


def test_symbolic_attributes_survive_the_round_trip():
    w = kernel_examples.Writer()
    x, shape = kernel_examples.tensor("x", sym("N")), (2, sym("N"))
    desc = w.desc("b", (x,), w.op("BroadcastTo", x, shape=shape, shape_=shape, count=sym("N") * 2))
    assert load_desc(dump_desc(desc)) == desc


def test_loading_does_not_change_the_given_object(mul_add):
    before = copy.deepcopy(mul_add)
    load_desc(mul_add)
    assert mul_add == before


@pytest.mark.parametrize("seed", range(100))
def test_random_kernels_survive_the_round_trip(seed):
    desc = load_desc(dump_desc(random_kernel(Random(seed)).desc))  # layouts are written out by loading
    assert load_desc(dump_desc(desc)) == desc
