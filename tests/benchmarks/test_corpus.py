"""The record of a corpus that is kept says of each file at which sizes it ran, and which features ran there first."""

from __future__ import annotations

import json

import kernel_examples as examples

from benchmarks.corpus import reduced, text
from kernelgen.__main__ import report
from kernelgen.verify import verify


def test_features_stand_with_the_size_at_which_they_ran_first():
    records = [verify(examples.softmax(400, 64), "ascend"), verify(examples.softmax(4, 8), "ascend")]
    found = json.loads(text(reduced(report(records, "ascend"), "2026-11-22")))
    assert (found["passed"], found["at_own_size"], found["at_other_sizes_only"]) == (2, 2, 0)
    for record, row in zip(records, found["records"], strict=True):
        assert row[0] == record.name
        assert [int(size) for size in row[5]] == list(record.argument_bytes)
        again = {found["features"][place]: int(size) for size, places in row[5].items() for place in places}
        assert again == record.features
