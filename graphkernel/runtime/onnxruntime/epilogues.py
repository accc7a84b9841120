"""Kernels that a library computes within the operator before them, so that a kernel of its own only cuts the library's work.

onnxruntime adds a bias for each channel, one more tensor, and an activation to a convolution while its results are in
registers (its fused Conv). A kernel for that reads and writes them once more, and the convolution becomes a session by itself:
ResNet-18 took 20 calls of 18 sessions in place of 2, MobileNet V2 1.3 times as long.

    c = Conv2D(x, w); y = ReLU(c + bias + z)     of a kernel f(c, bias, z) = ReLU(c + bias + z)
"""

from __future__ import annotations

import re

from graphkernel.ops.composite.activation import RELU
from graphkernel.ops.library.host import is_onnx
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.elemwise import ADD, MAXIMUM, MINIMUM, TANH
from kernelgen.tensor.operators.nn import CONV2D

PARTS = {RELU: "a", TANH: "a", MAXIMUM: "l", MINIMUM: "h"}
EPILOGUE = re.compile("b?t?(a|l?h?)")
"""A bias, a tensor, an activation: each may be there. A clip is a lower and an upper bound."""


def follows_convolution(graph: Graph, kernel: Node) -> bool:
    """Whether all that a fused node computes is the end of one convolution that nobody else reads."""
    if kernel.body is None or len(kernel.outs) != 1:
        return False
    pairs = zip(kernel.body.inputs, kernel.args, strict=True)
    starts = [inside for inside, given in pairs if _is_read_here(graph, given)]
    return any(_is_epilogue(kernel.body, start) for start in starts)


def _is_read_here(graph: Graph, given: Value) -> bool:
    """A convolution's result with one reader."""
    convolution = given.node
    is_one = (convolution.op is CONV2D or is_onnx(convolution, "Conv")) and given.type.dtype.name == "float32"
    return is_one and len(graph.users[convolution]) == 1 and given not in graph.outputs


def _is_epilogue(body: Graph, value: Value) -> bool:
    """A chain from ``value`` to the result, of parts in the order in which onnxruntime takes them."""
    parts = ""
    for node in body.operators:
        if value not in node.args or len(body.users[value.node]) != 1:
            return False
        parts += _part(node, value, [arg for arg in node.args if arg != value])
        value = node.out
    return body.outputs == (value,) and EPILOGUE.fullmatch(parts) is not None


def _part(node: Node, value: Value, others: list[Value]) -> str:
    """What an operator is to the convolution, as a letter; a blank when it is nothing that is computed within it."""
    if node.op is not ADD:
        is_fit = not others or (len(others) == 1 and others[0].constant is not None and others[0].constant.ndim == 0)
        return PARTS.get(node.op, " ") if is_fit else " "
    if len(others) != 1:
        return " "
    channels = value.type.shape[1]
    is_bias = others[0].type.shape[-3:] == (channels, 1, 1) and others[0].type.size == channels
    return "b" if is_bias else "t" if others[0].type == value.type else " "
