"""The page of gradients: how to ask for them, and the rule of every operator, read off the code."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from docs.markdown import page, table
from graphkernel.declarations import builtin_catalogue
from graphkernel.gradients.base import Gradient, Partial
from graphkernel.ops import OPS, Tensor
from kernelgen.tensor.graph import CONSTANT, PARAMETER, Builder, Value
from kernelgen.tensor.types import Attrs, TensorType, dtype

USE = """`gk.grad` and `gk.value_and_grad` differentiate a function in reverse. What comes out is a function again: it can
be traced, compiled by `gk.jit`, and differentiated once more. Its operators are those of the catalogue, so the whole
pipeline works on them: forward and backward meet in one graph, and kernels hold parts of both.

```python
import numpy as np
import graphkernel as gk
from graphkernel import ops


def loss(w, b, x, labels):
    logits = ops.bias_add(ops.matmul(x, w), b)
    return ops.reduce_mean(ops.softmax_cross_entropy_with_logits(logits, labels)[0])


def step(w, b, x, labels):
    value, (dw, db) = gk.value_and_grad(loss, argnums=(0, 1))(w, b, x, labels)
    return value, ops.assign(w, w - 0.5 * dw), ops.assign(b, b - 0.5 * db)


train = gk.jit(step)  # one executable; kernels write w and b where they lie
w, b = np.zeros((8, 3), np.float32), np.zeros(3, np.float32)
x = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
labels = np.eye(3, dtype=np.float32)[np.arange(16) % 3]
losses = [float(train(w, b, x, labels)[0]) for _ in range(20)]
assert losses[-1] < losses[0]
```

`python -m examples.training_step` trains a classifier with a layer norm and momentum: its 26 operators become 9 kernels
on the CPU, and its losses over 20 steps are torch's. BERT and a bottleneck of ResNet are trained in
`examples/networks`, counted in [networks](networks.md) and timed beside torch in [training](training.md).

* `argnums` says by which arguments; one may be a tuple, list or dict of tensors, and its gradient has the same structure.
* The result must be one scalar float. Of a tensor `y` with cotangent `dy` (the gradient of the loss by `y`) take
  `ops.reduce_sum(y * dy)`. A graph, traced or loaded, is differentiated by the names of its inputs:
  `gk.grad(graph, wrt=["x"])`, with `cotangents=True` of outputs of any shape, whose cotangents become further inputs.
* `ops.stop_gradient(x)` counts as constant. What a function knows from elsewhere than its arguments does too.
* Integers, flags and what is computed of them have no gradient. An operator on the way that has none is a `GradientError`
  with its name and the reason; complex numbers are refused.
* Data types stay: the gradient of a float16 argument is float16. What several users give is added up once, by one `AddN`.
* A new operator needs no rule when it has an expander: its expansion is differentiated. A rule is a declaration
  ([adding.md](adding.md)).

Corners and ties: `ReLU`, `ReLU6` and `Abs` have slope 0 at 0, `LeakyReLU` its `alpha`. Equal operands of `Maximum` and
`Minimum` give all to the first, as MindSpore's `MaximumGrad` does (torch: half to each). Equal greatest elements share the
gradient of `ReduceMax`; that of `ArgMaxWithValue` and `MaxPool` goes to the first. The gradients of `ReduceProd` and
`CumProd` hold where elements are 0, second derivatives there do not. Central differences in float64 agree with every
rule, and with the gradients of the gradients ([tests](../tests/catalogue/test_gradients.py)); a
[record of torch](../tests/facts/torch_gradients.json) agrees at corners and ties too, but where this page says otherwise."""

INFIX = {"Add": "+", "Sub": "-", "Mul": "*", "RealDiv": "/", "LogicalAnd": "and"}
COMPARED = {"Equal": "==", "Less": "<", "LessEqual": "<=", "Greater": ">", "GreaterEqual": ">="}
FLOAT, FLAG = dtype("float32"), dtype("bool")


def differentiation() -> Mapping[str, str]:
    """The page."""
    return {"docs/differentiation.md": page("Differentiation", USE, _rules(), _without())}


def _rules() -> str:
    rows = [
        (f"`{entry.name}`", " · ".join(formulas(entry)))
        for entry in sorted(builtin_catalogue().gradients, key=lambda entry: entry.name)
        if not entry.undefined
    ]
    head = (
        "## Rules\n\nThe cotangents of the operands, in their order. `y` (or `z`, `r`) is the result and `dy` (or `g`) its "
        "cotangent; what is broadcast is summed back."
    )
    return f"{head}\n\n{table(('operator', 'gradient'), rows)}"


def _without() -> str:
    catalogue = builtin_catalogue()
    ruled = {entry.name for entry in catalogue.gradients}
    expanded = sorted(entry.name for entry in catalogue.expanders if entry.name in OPS and entry.name not in ruled)
    refused = [
        (f"`{entry.name}`", entry.undefined)
        for entry in sorted(catalogue.gradients, key=lambda entry: entry.name)
        if entry.undefined
    ]
    return "\n\n".join([
        "## No rule, but an expansion",
        f"Where they have floats at all: {', '.join(f'`{name}`' for name in expanded)}.",
        "## No gradient",
        table(("operator", "because"), refused),
    ])  # fmt: skip


def formulas(entry: Gradient) -> Iterator[str]:
    """The cotangent of each operand in words."""
    if entry.flat:
        yield f"0: {entry.flat}"
    elif not entry.partials:
        yield entry.doc
    else:
        yield from (f"`{_recorded(entry.name, partial)}`" if partial else "none" for partial in entry.partials)


def _recorded(name: str, partial: Partial) -> str:
    """What a partial records, on scalars that are called as its parameters are."""
    names = list(inspect.signature(partial).parameters)
    builder, op = Builder(), OPS[name]
    types = [TensorType((), FLAG if name == "Select" and not place else FLOAT) for place in range(len(names) - 2)]
    (result,) = op.infer(tuple(types), Attrs())
    given = (builder.parameter(label, type_) for label, type_ in zip(names, [result, result, *types], strict=True))
    text = written(partial(*(Tensor(value, builder) for value in given)).value)
    return text[1:-1] if text.startswith("(") else text


def written(value: Value) -> str:
    """A value as a formula."""
    node = value.node
    if node.op is PARAMETER:
        return node.name
    if node.op is CONSTANT:
        return f"{float(node.data.array):.6g}" if node.data is not None and node.data.array is not None else "?"
    parts = [written(arg) for arg in node.args]
    sign = {**INFIX, **COMPARED}.get(node.op.name)
    if sign is not None:
        return f"({parts[0]} {sign} {parts[1]})"
    return f"-{parts[0]}" if node.op.name == "Neg" else f"{node.op.name}({', '.join(parts)})"
