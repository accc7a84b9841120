"""What editors and type checkers read of ``graphkernel.ops``: every operator's function, with parameters and docstring."""

from __future__ import annotations

from inspect import Parameter, Signature, signature

from graphkernel.ops.catalogue import OPS, function_called, snake_case
from graphkernel.ops.functions import written

HEAD = '''"""Operators: declarations, and the Python functions that record or compute them. Made by `make docs`."""

from collections.abc import Sequence
from typing import Any

from graphkernel.ops import pickles as pickles
from graphkernel.ops.catalogue import OPS as OPS
from graphkernel.ops.catalogue import Tensor as Tensor
from graphkernel.ops.catalogue import apply as apply
from graphkernel.ops.catalogue import apply_all as apply_all
from graphkernel.ops.catalogue import snake_case as snake_case
'''


def stub() -> str:
    """The text of ``graphkernel/ops/__init__.pyi``."""
    names = sorted({snake_case(name) for name in OPS})
    own = "".join(
        f"from graphkernel.ops.functions.written import {name} as {name}\n" for name in names if hasattr(written, name)
    )
    made = [_function(name) for name in names if not hasattr(written, name)]
    return f"{HEAD}{own}from kernelgen.tensor.types import Dim, DType\n\n" + "\n".join(made)


def _function(name: str) -> str:
    function = function_called(name)
    text = str(Signature([_typed(each) for each in signature(function).parameters.values()]))
    return f'def {name}{text} -> Any:\n    """{function.__doc__}"""\n'


def _typed(parameter: Parameter) -> Parameter:
    """With an annotation that prints as it is written."""
    given = parameter.annotation if isinstance(parameter.annotation, str) else "Any"
    return parameter.replace(annotation=_Written(given))


class _Written(str):
    def __repr__(self) -> str:
        return str(self)
