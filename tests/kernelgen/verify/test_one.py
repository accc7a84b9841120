"""The verifier is given compilers that are right, wrong, lazy, forgetful, refusing and broken."""

import json

import kernel_examples as examples
import pytest

from kernelgen.composite.write import dump_desc
from kernelgen.errors import UnsupportedError
from kernelgen.semantics import reference
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import INT32
from kernelgen.verify import Status, verify, verify_file


def right(desc, target):
    return reference(desc)


def changing(change):
    """A compiler whose kernels compute the right answer and then change the outputs or inputs."""

    def compiler(desc, target):
        def kernel(*inputs, out):
            reference(desc)(*inputs, out=out)
            change(inputs, out)

        return kernel

    return compiler


@pytest.mark.parametrize(
    "desc",
    [examples.softmax(), examples.momentum(), examples.half_sum(), examples.softmax(sym("N"))],
    ids=lambda d: d.name,
)
def test_right_kernels_pass(desc):
    record = verify(desc, compiler=right)
    assert (record.status, record.reason) == (Status.PASSED, "")
    assert record.max_error is not None
    assert record.max_error < float("inf")
    assert set(record.times) == {"compile", "run", "reference"}


def test_a_single_integer_is_compared():
    w, x = examples.Writer(), examples.tensor("x", 4)
    whole = w.op("Cast", w.op("ReduceSum", x, shape=(), axis=(0,)), shape=(), dtype=INT32)
    assert verify(w.desc("count", (x,), whole), compiler=right).status is Status.PASSED


def test_wrong_answers_fail():
    def spoil(inputs, out):
        out[0][2, 3] += 1

    record = verify(examples.softmax(), compiler=changing(spoil))
    assert (record.status, record.reason) == (Status.FAILED, "wrong-answer")
    assert record.message.startswith("t4: 1 of 54 elements differ, first at [2, 3]")
    assert record.max_error == pytest.approx(1)


def test_elements_that_are_not_written_fail():
    def lazy(desc, target):
        def kernel(*inputs, out):
            out[0][1:] = reference(desc)(*inputs)[0][1:]

        return kernel

    assert verify(examples.softmax(), compiler=lazy).reason == "wrong-answer"


def test_updated_inputs_are_compared():
    def forget(inputs, out):
        inputs[1][...] = 0

    record = verify(examples.momentum(), compiler=changing(forget))
    assert record.reason == "wrong-answer"
    assert record.message.startswith("m: ")


def test_refusals_are_skipped_with_their_code():
    def refuse(desc, target):
        raise UnsupportedError("unsupported-op", "no")

    record = verify(examples.softmax(), compiler=refuse)
    assert (record.status, record.reason) == (Status.SKIPPED, "unsupported-op")


def test_other_exceptions_fail():
    def broken(desc, target):
        raise ZeroDivisionError("oops")

    record = verify(examples.softmax(), compiler=broken)
    assert (record.status, record.reason, record.message) == (Status.FAILED, "exception", "ZeroDivisionError: oops")


def test_large_kernels_are_scaled_and_the_record_says_so():
    record = verify(examples.softmax(4096, 4096), compiler=right, byte_limit=1 << 16)
    assert (record.status, record.scaled) == (Status.PASSED, True)
    assert not verify(examples.softmax(), compiler=right).scaled


def test_kernels_that_neither_fit_nor_shrink_are_skipped():
    w, x = examples.Writer(), examples.tensor("x", 1 << 16)
    desc = w.desc("k", (x,), w.op("CumSum", x, shape=(1 << 16,), axis=0))
    assert verify(desc, compiler=right, byte_limit=1 << 10).reason == "too-large"


def test_files_keep_their_name_and_faulty_files_fail(tmp_path):
    good, bad = tmp_path / "good.info", tmp_path / "bad.info"
    good.write_text(json.dumps(dump_desc(examples.softmax())))
    bad.write_text('{"composite": true}')
    assert verify_file(good, compiler=right).name == "good.info"
    record = verify_file(bad, compiler=right)
    assert (record.name, record.status, record.reason) == ("bad.info", Status.FAILED, "bad-description")
    assert "$.op" in record.message


def test_records_are_json():
    record = verify(examples.softmax(), compiler=right)
    assert json.loads(json.dumps(record.to_json()))["status"] == "passed"
    assert record.max_error is not None
    assert record.max_error < 1e-6
