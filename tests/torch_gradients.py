"""``python tests/torch_gradients.py OUT``: gradients of operators as torch.autograd has them, at corners and ties too.

Needs torch and nothing of ours; each operator is written here in torch's own functions, under MindSpore's name. What it
writes is ``tests/facts/torch_gradients.json``; float64 throughout. A fact is the operator with its attributes, operands,
and the cotangents of its results (null where a result is an integer), and the gradient of each operand (null for integers).
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

torch: Any = import_module("torch")  # not among our dependencies
F: Any = import_module("torch.nn.functional")  # torch's own name for it

torch.manual_seed(0)

LINE = [-7.0, -3.0, -1.5, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0, 6.0, 6.5]
INSIDE = [-0.75, -0.5, 0.0, 0.25, 0.875]
ABOVE = [0.125, 0.5, 1.0, 2.5, 9.0]
OVER_ONE = [1.125, 1.5, 2.0, 7.0]
HALVES = [-2.75, -1.25, -0.25, 0.25, 1.75]
A, B = [[-1.5, 0.25, 2.0], [0.75, -0.5, 3.0]], [1.25, -2.0, 0.5]
C = [[2.0, 0.5, -1.0], [1.5, -3.0, 0.25]]
facts: list[dict[str, object]] = []


def tensor(content) -> Any:
    return content.double() if isinstance(content, torch.Tensor) else torch.tensor(content)


def normal(*shape):
    return (torch.randn(shape, dtype=torch.float64) * 64).round() / 64


def rounded(x):
    return {"shape": list(x.shape), "values": [float(f"{v:.15g}") for v in x.reshape(-1).tolist()]}


def fact(op, function, *operands, **attrs):
    """``function(*operands)`` is the operator; integer operands are lists of ints."""
    given = [tensor(operand) for operand in operands]
    given = [x.double().requires_grad_() if x.dtype.is_floating_point else x for x in given]
    results = function(*given)
    results = list(results) if isinstance(results, tuple | list) else [results]
    seen = [y if y is not None and y.dtype.is_floating_point else None for y in results]
    cotangents = [None if y is None else normal(*y.shape) for y in seen]
    wanted = [x for x in given if x.requires_grad]
    total: Any = sum((y * dy).sum() for y, dy in zip(seen, cotangents, strict=True) if y is not None)
    found = iter(torch.autograd.grad(total, wanted, allow_unused=True) if total.requires_grad else [None] * len(wanted))
    gradients: list[object] = []
    for x in given:
        gradient = next(found) if x.requires_grad else None
        zero = torch.zeros_like(x) if x.requires_grad and gradient is None else gradient
        gradients.append(None if zero is None else rounded(zero))
    facts.append({
        "op": op,
        "attrs": attrs,
        "operands": [{**rounded(x.detach()), "dtype": str(x.dtype).removeprefix("torch.")} for x in given],
        "cotangents": [None if dy is None else rounded(dy) for dy in cotangents],
        "gradients": gradients,
    })  # fmt: skip


def slope(function):
    """The gradient of a function as an operator of (dy, x)."""
    return lambda dy, x: torch.autograd.grad(function(x), x, dy, create_graph=True)[0]


def elementwise():
    for op, function in {
        "Abs": torch.abs, "Neg": torch.neg, "Sign": torch.sign, "Floor": torch.floor, "Ceil": torch.ceil, "Trunc": torch.trunc,
        "Round": torch.round, "Exp": torch.exp, "Expm1": torch.expm1, "Tanh": torch.tanh, "Erf": torch.erf, "Erfc": torch.erfc,
        "Sin": torch.sin, "Cos": torch.cos, "Tan": torch.tan, "Sinh": torch.sinh, "Cosh": torch.cosh, "Atan": torch.atan,
        "Asinh": torch.asinh, "AsinhExt": torch.asinh, "Square": torch.square, "Sigmoid": torch.sigmoid, "ReLU": F.relu,
        "ReLU6": F.relu6, "SiLU": F.silu, "Softsign": F.softsign, "HSigmoid": F.hardsigmoid, "HSwish": F.hardswish,
        "Softplus": lambda x: F.softplus(x, threshold=1e3), "GeLU": lambda x: F.gelu(x, approximate="tanh"),
        "FastGeLU": lambda x: x * torch.sigmoid(1.702 * x), "FastGelu": lambda x: x * torch.sigmoid(1.702 * x),
        "TensorMove": torch.clone, "IdentityMath": torch.clone, "OnesLike": torch.ones_like, "ZerosLike": torch.zeros_like,
        "StopGradient": torch.detach,
    }.items():  # fmt: skip
        fact(op, function, HALVES if op in ("Floor", "Ceil", "Trunc", "Round") else LINE)
    for op, function, line in (
        ("Sqrt", torch.sqrt, ABOVE), ("Rsqrt", torch.rsqrt, ABOVE), ("Log", torch.log, ABOVE), ("Log1p", torch.log1p, ABOVE),
        ("Reciprocal", torch.reciprocal, [-2.0, -0.5, 0.25, 3.0]), ("Asin", torch.asin, INSIDE), ("ACos", torch.acos, INSIDE),
        ("Atanh", torch.atanh, INSIDE), ("Acosh", torch.acosh, OVER_ONE), ("AcoshExt", torch.acosh, OVER_ONE),
    ):  # fmt: skip
        fact(op, function, line)
    fact("Gelu", F.gelu, LINE, approximate="none")
    fact("Gelu", lambda x: F.gelu(x, approximate="tanh"), LINE, approximate="tanh")
    for op in ("LeakyReLU", "Elu", "EluExt"):
        fact(op, lambda x, op=op: F.leaky_relu(x, 0.7) if op == "LeakyReLU" else F.elu(x, 0.7), LINE, alpha=0.7)
    fact("LeakyReLUExt", lambda x: F.leaky_relu(x, 0.2), LINE, negative_slope=0.2)
    fact("SoftplusExt", lambda x: F.softplus(x, 2.0, 3.0), LINE, beta=2.0, threshold=3.0)
    fact("HShrink", lambda x: F.hardshrink(x, 0.5), LINE, lambd=0.5)
    fact("ClampScalar", lambda x: torch.clamp(x, -1.5, 3.0), LINE, min=-1.5, max=3.0)
    fact("ClampScalar", lambda x: torch.clamp(x, max=1.0), LINE, max=1.0)
    fact("Muls", lambda x: x * -0.3, LINE, other=-0.3)


def operands_that_broadcast():
    for op, function in {
        "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "RealDiv": torch.div, "Div": torch.div, "Mod": torch.fmod,
        "FloorMod": torch.remainder, "Atan2": torch.atan2, "Maximum": torch.maximum, "Minimum": torch.minimum,
        "SquaredDifference": lambda x, y: (x - y) ** 2,
        "FloorDiv": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    }.items():  # fmt: skip
        fact(op, function, A, B)
        fact(op, function, [[0.5], [-2.0]], [[[1.0, 3.0, -0.75]]])
    fact("AssignAdd", torch.add, A, C)
    fact("Assign", lambda x, y: y + 0 * x.detach(), A, C)
    fact("Pow", torch.pow, [[0.5, 2.0, 0.0], [3.0, 1.0, 0.0]], [2.0, 0.0, 3.0])
    fact("Pow", torch.pow, [0.0, 0.0, 1.5, 0.25], [0.0, 2.0, -1.5, 0.5])
    fact("Pow", torch.pow, [-2.0, -0.5, 3.0], [3.0, 2.0, -1.0])
    fact("AddExt", lambda x, y: torch.add(x, y, alpha=2.5), A, B, alpha=2.5)
    fact("SubExt", lambda x, y: torch.sub(x, y, alpha=-0.5), A, B, alpha=-0.5)
    fact("FusedMulAdd", lambda x, y, z: x * y + z, A, B, [[1.0], [2.0]])
    fact("Addcmul", lambda x, y, z, v: x + v * (y * z), A, B, C, 0.75)
    fact("DivMod", torch.div, A, B, rounding_mode="none")
    fact("DivMod", lambda x, y: torch.div(x, y, rounding_mode="trunc"), A, B, rounding_mode="trunc")
    fact("AddN", lambda x, y, z: x + y + z, A, C, A)
    fact("Cast", lambda x: x.float().double(), A, dst_type="float64")
    fact("Select", torch.where, [[True, False, True]], A, B)


def reductions():
    tied = [[1.0, 3.0, 3.0], [-2.0, 0.0, -2.0]]
    zeros = [[2.0, 0.0, -1.5, 3.0], [0.0, 4.0, 0.0, 1.0], [0.5, -2.0, 1.5, 1.0]]
    for keep in (True, False):
        fact("ReduceSum", lambda x, k=keep: x.sum((1,), k), A, axis=[1], keep_dims=keep)
        for op in ("ReduceMean", "MeanExt"):
            fact(op, lambda x, k=keep: x.mean((0, 1), k), A, axis=[0, 1], keep_dims=keep)
        fact("ReduceMax", lambda x, k=keep: x.amax(1, k), tied, axis=[1], keep_dims=keep)
        fact("ReduceMin", lambda x, k=keep: x.amin(1, k), tied, axis=[1], keep_dims=keep)
        fact("ReduceProd", lambda x, k=keep: x.prod(1, k), zeros, axis=[1], keep_dims=keep)
        fact("ArgMaxWithValue", lambda x, k=keep: x.max(1, k)[::-1], A, axis=1, keep_dims=keep)
        fact("ArgMinWithValue", lambda x, k=keep: x.min(1, k)[::-1], A, axis=1, keep_dims=keep)
    fact("SumExt", lambda x: x.sum(0), A, axis=[0])
    fact("SquareSumAll", lambda x, y: ((x * x).sum(), (y * y).sum()), A, B)
    for op, function in (("CumSum", torch.cumsum), ("CumProd", torch.cumprod)):
        fact(op, lambda x, f=function: f(x, 1), zeros, axis=1)
        fact(op, lambda x, f=function: f(x.flip(1), 1).flip(1), zeros, axis=1, reverse=True)
    ones = torch.ones(3, 1, dtype=torch.float64)
    fact("CumSum", lambda x: torch.cumsum(x, 1) - x, zeros, axis=1, exclusive=True)
    fact("CumProd", lambda x: torch.cumprod(torch.cat([ones, x[:, :-1]], 1), 1), zeros, axis=1, exclusive=True)


def shapes():
    cube = normal(2, 3, 4)
    fact("Reshape", lambda x: x.reshape(4, 6), cube, shape=[4, 6])
    fact("DynamicReshape", lambda x, s: x.reshape(4, 6), cube, [4, 6], shape=[4, 6])
    fact("ReshapeExt", lambda x, like: x.reshape(4, 6) + 0 * like.sum(), cube, A, shape=[4, 6], only_depend_shape=[1])
    fact("ZerosLikeExt", torch.zeros_like, A)
    fact("Flatten", lambda x: x.reshape(2, 12), cube, axis=1)
    fact("ExpandDims", lambda x: x.unsqueeze(1), cube, axis=1)
    fact("Squeeze", lambda x: x.squeeze(1), normal(3, 1, 2), axis=[1])
    fact("Transpose", lambda x: x.permute(2, 0, 1), cube, perm=[2, 0, 1])
    fact("BroadcastTo", lambda x: x.expand(2, 2, 3), [[1.0], [2.0]], shape=[2, 2, 3])
    fact("Tile", lambda x: x.tile(2, 1, 3), A, multiples=[2, 1, 3])
    fact("RepeatInterleaveInt", lambda x: x.repeat_interleave(2, 1), A, repeats=2, dim=1)
    fact("RepeatInterleaveInt", lambda x: x.repeat_interleave(2), A, repeats=2)
    fact("FillV2", lambda x: x.expand(2, 3), 1.5, shape=[2, 3])
    fact("Concat", lambda x, y: torch.cat([x, y], 1), A, normal(2, 2), axis=1)
    fact("Split", lambda x: x.split([1, 2], 1), A, axis=1, size_splits=[1, 2])
    fact("SplitWithSize", lambda x: x.split([1, 2], 1), A, axis=1, split_sizes=[1, 2])
    fact("Slice", lambda x: x[1:2, 0:2], A, begin=[1, 0], size=[1, 2])
    fact("StridedSlice", lambda x: x[1:6:2, 0:2], normal(7, 3), begin=[1, 0], end=[6, 2], strides=[2, 1])
    fact("StridedSlice", lambda x: x.flip(0)[1::2], normal(8, 2), begin=[6, 0], end=[-1, 2], strides=[-2, 1])
    fact("Pad", lambda x: F.pad(x, (0, 2, 1, 0), value=3.0), A, paddings=[1, 0, 0, 2], value=3.0)
    fact("PadAkg", lambda x: F.pad(x, (0, 2, 1, 0)), A, head=[1, 0], tail=[0, 2])
    fact("UnPadAkg", lambda x: x[:, :2], A, tail=[0, 1])


def places():
    rows, picked = normal(4, 3), [[0, 3], [1, 0]]
    fact("Gather", lambda x, i: F.embedding(i, x), rows, picked, axis=0)
    fact("Gather", lambda x, i: x[:, i], rows, [-1, 0, 2, 0], axis=1)
    fact("Gather", lambda x, i: x[i], rows, 2, axis=0)
    fact("GatherNd", lambda x, i: x[i[:, 0], i[:, 1]], rows, [[0, 1], [3, 2], [0, 1]])
    fact("TensorScatterAdd", lambda x, i, u: x.index_add(0, i[:, 0], u), rows, [[1], [1], [3]], normal(3, 3))
    fact("UnsortedSegmentSum", lambda x, i: x.new_zeros(3, 3).index_add(0, i, x), rows, [2, 0, 2, 1], num_segments=3)
    fact(
        "OneHot",
        lambda i, on, off: torch.where(F.one_hot(i, 4).bool(), on, off),
        [1, 3, 3],
        2.0,
        -1.0,
        depth=4,
        axis=-1,
    )


def sparse_rows():
    """The 3 x 4 matrix whose stored elements are at (0, 0), (0, 3), (1, 1), (2, 2), (2, 3)."""
    indptr, indices, rows = [0, 2, 3, 5], [0, 3, 1, 2, 3], torch.tensor([0, 0, 1, 2, 2])
    values, dense, shape = normal(5), normal(3, 4) + 3, {"dense_shape": [3, 4]}

    def whole(i, v):
        return v.new_zeros(3, 4).index_put((rows, i), v)

    fact("CSRMul", lambda p, i, v, d: v * d.expand(3, 4)[rows, i], indptr, indices, values, dense, **shape)
    fact("CSRDiv", lambda p, i, v, d: v / d.expand(3, 4)[rows, i], indptr, indices, values, dense[:1], **shape)
    fact("CSRGather", lambda p, i, d: d[rows, i], indptr, indices, dense, **shape)
    fact("CSRReduceSum", lambda p, i, v: whole(i, v).sum(1, True), indptr, indices, values, axis=1, **shape)
    fact("CSRMV", lambda p, i, v, d: whole(i, v) @ d, indptr, indices, values, normal(4, 1), **shape)
    fact("CSRMM", lambda p, i, v, d: whole(i, v) @ d, indptr, indices, values, normal(4, 2), **shape)


def products():
    for left in (False, True):
        for right in (False, True):
            a, b = normal(*(4, 2) if left else (2, 4)), normal(*(3, 4) if right else (4, 3))
            flags = {"transpose_a": left, "transpose_b": right}

            def product(a, b, left=left, right=right):
                return (a.mT if left else a) @ (b.mT if right else b)

            fact("MatMul", product, a, b, **flags)
            fact("BatchMatMul", product, a.expand(2, 1, *a.shape).clone(), b.expand(3, *b.shape).clone(), **flags)
    fact("MatMul", lambda a, b, c: a @ b + c, normal(2, 3), normal(3, 4), normal(4))
    window = {"stride": [2, 1], "pad": [1, 1, 2, 2], "dilation": [2, 1], "group": 2}
    torches = {"stride": (2, 1), "padding": (1, 2), "dilation": (2, 1), "groups": 2}
    x, weight = normal(2, 4, 7, 5), normal(6, 2, 3, 2)
    dy = normal(*F.conv2d(x, weight, **torches).shape)
    fact("Conv2D", lambda x, w: F.conv2d(x, w, **torches), x, weight, **window)

    def by_input(dy, weight):
        at = x.clone().requires_grad_()
        return torch.autograd.grad(F.conv2d(at, weight, **torches), at, dy, create_graph=True)[0]

    def by_filter(dy, x):
        at = weight.clone().requires_grad_()
        return torch.autograd.grad(F.conv2d(x, at, **torches), at, dy, create_graph=True)[0]

    fact("Conv2DBackpropInput", by_input, dy, weight, input_size=list(x.shape), **window)
    fact("Conv2DBackpropFilter", by_filter, dy, x, filter_size=list(weight.shape), **window)
    square = normal(2, 3, 3) + 4 * torch.eye(3, dtype=torch.float64)
    for lower in (False, True):
        for trans in (False, True):

            def solve(a, b, lower=lower, trans=trans):
                triangle = a.tril() if lower else a.triu()
                system = triangle.mT if trans else triangle
                return torch.linalg.solve_triangular(system, b, upper=lower == trans)

            fact("SolveTriangular", solve, square, normal(2, 3, 2), lower=lower, trans=trans)
    fact("Lu", lambda a: (torch.linalg.lu_factor(a)[0], None), normal(2, 3, 3) * 3)
    ends = [2, 5]

    def grouped(x, w, g):
        return torch.cat([x[:2] @ w[0], x[2:5] @ w[1]])

    fact("GroupedMatmul", grouped, normal(5, 3), normal(2, 3, 4), ends)


def pools():
    image = normal(1, 2, 7, 6)
    image[0, 0, :4] = 1.0  # ties
    fact(
        "MaxPool",
        lambda x: F.max_pool2d(x, (3, 2), (2, 2), (1, 1)),
        image,
        kernel_size=[3, 2],
        stride=[2, 2],
        pad=[1, 1, 1, 1],
    )
    fact(
        "MaxPool", lambda x: F.max_pool2d(x, 2, 3, 0, (2, 1), ceil_mode=True), image, kernel_size=[2, 2], stride=[3, 3],
        dilation=[2, 1], ceil_mode=True,
    )  # fmt: skip
    for counted in (False, True):
        for ceil in (False, True):
            window = {"kernel_size": [3, 3], "stride": [2, 2], "pad": [1, 1, 1, 1], "ceil_mode": ceil}

            def mean(x, counted=counted, ceil=ceil):
                return F.avg_pool2d(x, 3, 2, 1, ceil, counted)

            fact("AvgPool", mean, image, count_include_pad=counted, **window)
    fact("Pool2D", lambda x: x.mean((2, 3), True), image, pool_type="avg", **{"global": True})
    fact("Pool2D", lambda x: F.max_pool2d(x, 2, 2), image, pool_type="max", kernel_size=[2, 2], strides=[2, 2])


def norms():
    x, gamma, beta = normal(2, 3, 4), normal(3, 4), normal(3, 4)
    statistics = {"begin_norm_axis": 1, "begin_params_axis": 1, "epsilon": 1e-3}

    def layer_norm(x, gamma, beta):
        mean, variance = x.mean((1, 2), True), x.var((1, 2), keepdim=True, correction=0)
        return F.layer_norm(x, (3, 4), gamma, beta, 1e-3), mean, variance

    fact("LayerNorm", layer_norm, x, gamma, beta, **statistics)
    fact("RmsNorm", lambda x, g: (F.rms_norm(x, (4,), g, 1e-3), (x.square().mean(-1, True) + 1e-3).rsqrt()), x, normal(4),
         epsilon=1e-3)  # fmt: skip
    for axis in ((-1,), (0, 2)):

        def over(x, function, axis=axis):
            moved = x.movedim(axis, tuple(range(-len(axis), 0)))
            return (
                function(moved.flatten(-len(axis)), -1).reshape(moved.shape).movedim(tuple(range(-len(axis), 0)), axis)
            )

        fact("Softmax", lambda x, o=over: o(x, torch.softmax), x, axis=list(axis))
        fact("LogSoftmax", lambda x, o=over: o(x, torch.log_softmax), x, axis=list(axis))
    image, parameters = normal(3, 2, 2, 2), (normal(2), normal(2), normal(2), normal(2).abs() + 0.5)

    def trained(x, scale, bias, mean, variance):
        own, spread = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
        y = F.batch_norm(x, None, None, scale, bias, True, 0.1, 1e-3)
        unbiased = x.var((0, 2, 3), correction=1)
        return y, 0.9 * mean + 0.1 * own, 0.9 * variance + 0.1 * unbiased, own, (spread + 1e-3).rsqrt()

    def known(x, scale, bias, mean, variance):
        mean, variance, scale, bias = (of.reshape(1, 2, 1, 1) for of in (mean, variance, scale, bias))
        return (x - mean) * (variance + 1e-3).rsqrt() * scale + bias

    fact("BatchNorm", trained, image, *parameters, epsilon=1e-3, momentum=0.1, is_training=True)
    fact("BatchNorm", known, image, *parameters, epsilon=1e-3)
    fact("BiasAdd", lambda x, b: x + b.reshape(1, 2, 1, 1), image, normal(2))
    fact("BiasAdd", lambda x, b: x + b.reshape(1, 3, 1), x, normal(3))
    fact("BiasAddGrad", lambda dy: dy.sum((0, 2, 3)), image)

    def clipped(x, bound):
        norm = x.square().sum(1, True).sqrt()
        return torch.where(norm > bound, x * bound / norm, x)

    fact("ClipByNorm", clipped, A, 2.0, axis=[1])
    fact("Swiglu", lambda x: F.silu(x[..., :2]) * x[..., 2:], x)
    q, k, v = normal(2, 2, 3, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 4)
    fact("PromptFlashAttention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.25), q, k, v, num_heads=2,
         num_key_value_heads=2, scale_value=0.25)  # fmt: skip
    fact("DropoutGrad", lambda dy, mask: dy / 0.8 * mask, A, [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]], keep_prob=0.8)


def losses():
    logits, labels = normal(3, 4), torch.softmax(normal(3, 4), -1)
    fact("SoftmaxCrossEntropyWithLogits", lambda x, z: (-(z * torch.log_softmax(x, -1)).sum(-1), None), logits, labels)
    fact("SigmoidCrossEntropyWithLogits", lambda x, z: F.binary_cross_entropy_with_logits(x, z, reduction="none"), LINE,
         [0.25] * len(LINE))  # fmt: skip
    fact(
        "SigmoidCrossEntropyWithLogitsGrad", lambda x, z, dy: (torch.sigmoid(x) - z) * dy, LINE, [0.25] * 11, [1.5] * 11
    )
    p, z, w = [[0.25, 0.5, 0.001], [0.999, 0.75, 0.125]], [[1.0, 0.25, 0.0], [0.5, 0.0, 1.0]], [0.5, 2.0, 1.0]
    for reduction, reduce in (("none", lambda y: y), ("mean", torch.mean), ("sum", torch.sum)):

        def of_probabilities(p, z, w, reduce=reduce):
            return reduce(F.binary_cross_entropy(p, z, reduction="none") * w)

        def of_logits(x, z, w, c, reduce=reduce):
            return reduce(w * ((1 - z) * x + (1 + (c - 1) * z) * F.softplus(-x)))  # torch has no gradient by pos_weight

        fact("BinaryCrossEntropy", of_probabilities, p, z, w, reduction=reduction)
        fact("BCEWithLogitsLoss", of_logits, A, z, w, [1.0, 0.5, 3.0], reduction=reduction)


def second_derivatives():
    dy = [1.5, -0.5, 2.0, 1.0, 0.75, -1.0, 0.5, 3.0, 1.0, -2.0, 1.0]
    for op, function in {
        "SiLUGrad": F.silu, "GeLUGrad": lambda x: F.gelu(x, approximate="tanh"), "SoftplusGrad": lambda x: F.softplus(x),
        "FastGeLUGrad": lambda x: x * torch.sigmoid(1.702 * x), "FastGeluGrad": lambda x: x * torch.sigmoid(1.702 * x),
    }.items():  # fmt: skip
        fact(op, slope(function), dy, LINE)
    fact("SoftplusGradExt", slope(lambda x: F.softplus(x, 2.0, 3.0)), dy, LINE, beta=2.0, threshold=3.0)
    fact("ReluGrad", lambda dy, y: torch.where(y > 0, dy, 0.0) + 0 * y, dy, LINE)
    y, dy = INSIDE, dy[:5]
    fact("TanhGrad", lambda y, dy: dy * (1 - y * y), y, dy)
    fact("SigmoidGrad", lambda y, dy: dy * y * (1 - y), y, dy)
    fact("SqrtGrad", lambda y, dy: dy / (2 * y), ABOVE, dy)
    fact("RsqrtGrad", lambda y, dy: -0.5 * y**3 * dy, ABOVE, dy)
    fact("SoftmaxGrad", lambda y, dy: y * (dy - (y * dy).sum(-1, True)), torch.softmax(tensor(A).double(), -1), C)
    fact("SoftmaxBackward", lambda dy, y: y * (dy - (y * dy).sum(-1, True)), C, torch.softmax(tensor(A).double(), -1))
    fact("LogSoftmaxGrad", lambda y, dy: dy - y.exp() * dy.sum(-1, True), torch.log_softmax(tensor(A).double(), -1), C)
    fact("SoftmaxGradExt", lambda dy, y, z: y * (dy - (y * dy).sum(-1, True)) * z, C, A, B)

    def of_layer_norm(x, dy, variance, mean, gamma):
        rstd = (variance + 1e-3).rsqrt()
        n, t = (x - mean) * rstd, dy * gamma
        return rstd * (t - t.mean(-1, True) - n * (t * n).mean(-1, True)), (dy * n).sum(0), dy.sum(0)

    fact("LayerNormGrad", of_layer_norm, A, C, [[1.5], [0.5]], [[0.25], [1.0]], B, begin_norm_axis=1, begin_params_axis=1,
         epsilon=1e-3)  # fmt: skip

    def of_rms_norm(dy, x, rstd, gamma):
        n, t = x * rstd, dy * gamma
        return rstd * (t - n * (t * n).mean(-1, True)), (dy * n).sum(0)

    fact("RmsNormGrad", of_rms_norm, C, A, [[0.5], [1.5]], B)


for family in (
    elementwise, operands_that_broadcast, reductions, shapes, places, sparse_rows, products, pools, norms, losses,
    second_derivatives,
):  # fmt: skip
    family()

lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in facts)
Path(sys.argv[1]).write_text(f'{{"torch":"{torch.__version__}","facts":[\n{lines}\n]}}\n')
print(len(facts), "facts of", len({entry["op"] for entry in facts}), "operators")
