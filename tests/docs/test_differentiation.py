"""The page of gradients: its program runs, and formulas are read off the rules."""

from __future__ import annotations

import re
import subprocess
import sys

from docs.differentiation import formulas
from graphkernel import ops
from graphkernel.gradients.base import flat, pointwise
from kernelgen.tensor.operators.elemwise import FLOOR, MUL
from tests.support.sources import ROOT


def test_the_program_runs() -> None:
    page = (ROOT / "docs" / "differentiation.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=120)


def test_formulas_are_what_rules_record() -> None:
    rule = pointwise(MUL, lambda dy, z, x, y: dy * y, lambda dy, z, x, y: -dy * (ops.sin(x) + 2.0))
    assert list(formulas(rule)) == ["`dy * y`", "`-dy * (Sin(x) + 2)`"]
    assert list(formulas(flat(FLOOR, "constant between jumps"))) == ["0: constant between jumps"]
