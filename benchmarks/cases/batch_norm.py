"""relu(batch_norm(x) + residual): what ends a residual block of a convolutional network."""

import numpy as np

from benchmarks.case import Case, channel
from graphkernel import ops

EPSILON = 1e-5


def _ours(x, residual, scale, bias, mean, variance):
    return ops.relu(ops.add(ops.batch_norm(x, scale, bias, mean, variance, epsilon=EPSILON), residual))


def _numpy(x, residual, scale, bias, mean, variance):
    normal = (x - channel(mean)) / np.sqrt(channel(variance) + EPSILON)
    return np.maximum(normal * channel(scale) + channel(bias) + residual, 0)


def _torch(torch):
    batch_norm = torch.nn.functional.batch_norm
    return lambda x, residual, scale, bias, mean, variance: torch.relu(
        batch_norm(x, mean, variance, scale, bias, False, 0.0, EPSILON) + residual
    )


def _shapes(image, channels):
    vector = (channels,)
    return {"x": image, "residual": image, "scale": vector, "bias": vector, "mean": vector, "variance": vector}


BATCH_NORM = Case("batch_norm", _shapes((32, 256, 56, 56), 256), _shapes((2, 3, 5, 5), 3), _ours, _numpy, _torch)
