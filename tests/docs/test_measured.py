"""The pages of committed runs say what the records say."""

from __future__ import annotations

from xml.etree import ElementTree

from docs import measured

GROWTH = {
    "cases": {
        "chain": [
            {"operators": 1000, "seconds": 0.5, "peak_megabytes": 60.0, "launches": 4, "passes": {"stage3_split": 0.3}},
            {"operators": 10000, "seconds": 5.0, "peak_megabytes": 90.0, "launches": 40, "exponent": 1.0, "passes": {}},
        ]
    }
}
LEVEL = {"kernels": 2, "outside": 3, "launches": 6, "bytes": 5_000_000, "optimize_seconds": 0.25, "largest_error": 0.0}
LEVELS = {f"level{level}": LEVEL for level in range(4)}
NETWORKS = {
    "cases": {
        "net": {"size": "1 x 1", "before": {"kernels": 0, "outside": 9, "bytes": 9_000_000}}
        | dict.fromkeys(measured.TARGETS, LEVELS)
    }
}
ANCESTOR = {
    "nets": {
        "net": {
            "level1": {
                "before": NETWORKS["cases"]["net"]["before"],
                "after": {"kernels": 2, "outside": 3, "bytes": 5_000_000},
            },
            "level2": {"failed": "not compiled within 9 s"},
        }
    }
}


def test_plot_is_a_picture_in_which_linear_growth_is_the_dashed_line() -> None:
    picture = ElementTree.fromstring(measured.growth_plot(GROWTH))
    (line,) = [element for element in picture if element.tag.endswith("polyline")]
    (dashed,) = [element for element in picture if "stroke-dasharray" in element.attrib]
    ends = line.attrib["points"].replace(",", " ").split()
    assert dashed.attrib["d"].replace("M", "").replace("L", " ").split() == ends
    assert "chain" in [element.text for element in picture]


def test_growth_has_a_row_for_each_size() -> None:
    first, second = measured.growth_rows(GROWTH)
    assert first == ("`chain`", "1,000", "0.50", "", "60", "4", "split 0.30")
    assert second[3] == "1.0"


def test_networks_stand_beside_what_the_ancestor_launches() -> None:
    before, first, second, third = measured.network_rows(NETWORKS, ANCESTOR)
    assert before[2:6] == ("9, 9 MB", "9, 9 MB", "9, 9 MB", "9, 9 MB")
    assert first[2] == "6 (2 kernels), 5 MB"
    assert first[5] == "5 (2 kernels), 5 MB"
    assert second[5] == "not compiled within 9 s"
    assert third[5] == ""
