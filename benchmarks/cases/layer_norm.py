"""layer_norm(x + bias + residual): what ends every transformer sub-layer, and the same where only the call counts."""

from benchmarks.case import Case
from graphkernel import ops

EPSILON = 1e-5


def _ours(x, bias, residual, gamma, beta):
    return ops.layer_norm(ops.add(ops.add(x, bias), residual), gamma, beta, epsilon=EPSILON)[0]


def _numpy(x, bias, residual, gamma, beta):
    t = x + bias + residual
    return (t - t.mean(-1, keepdims=True)) / (t.var(-1, keepdims=True) + EPSILON) ** 0.5 * gamma + beta


def _torch(torch):
    layer_norm = torch.nn.functional.layer_norm
    return lambda x, bias, residual, gamma, beta: layer_norm(x + bias + residual, x.shape[-1:], gamma, beta, EPSILON)


def _shapes(rows, columns):
    vector, matrix = (columns,), (rows, columns)
    return {"x": matrix, "bias": vector, "residual": matrix, "gamma": vector, "beta": vector}


LAYER_NORM = Case("layer_norm", _shapes(4096, 768), _shapes(5, 33), _ours, _numpy, _torch)
LAYER_NORM_SMALL = Case("layer_norm_small", _shapes(64, 64), _shapes(4, 8), _ours, _numpy, _torch)
