"""The networks of ``examples.networks`` by MindSpore's own layers, at real size.

MindSpore reads the source of ``construct``: it takes plain methods, attributes of ``self`` and names of this module.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportMissingParameterType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false, reportIncompatibleMethodOverride=false
# pyright: reportUnknownArgumentType=false, reportUnannotatedClassAttribute=false, reportUninitializedInstanceVariable=false

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


def _bert(batch: int = 1, tokens: int = 128, layers: int = 12, training: bool = False) -> tuple[Any, tuple[Any, ...]]:
    hidden, heads, inner, vocabulary, positions, classes = 768, 12, 3072, 30522, 512, 2

    def table(rows: int, name: str) -> Any:
        return Parameter(Tensor(np.random.standard_normal((rows, hidden)).astype(np.float32) * 0.02), name=name)

    class Layer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.output = (nn.Dense(hidden, hidden) for _ in range(4))
            self.up, self.down = nn.Dense(hidden, inner), nn.Dense(inner, hidden)
            self.first, self.second = (nn.LayerNorm((hidden,), epsilon=1e-12) for _ in range(2))
            self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()
            self.softmax, self.gelu = ops.Softmax(-1), ops.GeLU()
            self.reshape, self.transpose = ops.Reshape(), ops.Transpose()

        def in_heads(self, x):
            return self.transpose(self.reshape(x, (batch, tokens, heads, hidden // heads)), (0, 2, 1, 3))

        def construct(self, x, penalty):
            query, key, value = self.in_heads(self.query(x)), self.in_heads(self.key(x)), self.in_heads(self.value(x))
            weights = self.softmax(self.scores(query, key) * (1 / 8.0) + penalty)
            mixed = self.transpose(self.mix(weights, value), (0, 2, 1, 3))
            x = self.first(self.output(self.reshape(mixed, (batch * tokens, hidden))) + x)
            return self.second(self.down(self.gelu(self.up(x))) + x)

    class Encoder(nn.Cell):
        def __init__(self):
            super().__init__()
            self.words, self.places = table(vocabulary, "words"), table(positions, "places")
            self.numbers = Tensor(np.arange(tokens, dtype=np.int32))
            self.norm = nn.LayerNorm((hidden,), epsilon=1e-12)
            self.layers = nn.CellList([Layer() for _ in range(layers)])
            self.gather, self.reshape, self.cast = ops.Gather(), ops.Reshape(), ops.Cast()

        def construct(self, ids, mask):
            words = self.gather(self.words, self.reshape(ids, (batch * tokens,)), 0)
            places = self.gather(self.places, self.numbers, 0)
            embedded = self.reshape(words, (batch, tokens, hidden)) + places
            x = self.norm(self.reshape(embedded, (batch * tokens, hidden)))
            penalty = (1.0 - self.reshape(self.cast(mask, mindspore.float32), (batch, 1, 1, tokens))) * -10000.0
            for layer in self.layers:
                x = layer(x, penalty)
            return x

    class Classifier(nn.Cell):
        def __init__(self):
            super().__init__()
            self.encoder = Encoder()
            self.pooler, self.head = nn.Dense(hidden, hidden), nn.Dense(hidden, classes)
            self.reshape, self.tanh = ops.Reshape(), ops.Tanh()

        def construct(self, ids, mask):
            states = self.reshape(self.encoder(ids, mask), (batch, tokens, hidden))
            first = self.reshape(states[:, 0:1, :], (batch, hidden))
            return self.head(self.tanh(self.pooler(first)))

    ids = Tensor(np.ones((batch, tokens), np.int32))
    mask = Tensor(np.ones((batch, tokens), np.int32))
    labels = Tensor(np.zeros(batch, np.int32))
    return (_step(Classifier(), classes), (ids, mask, labels)) if training else (Encoder(), (ids, mask))


def _step(net: Any, classes: int) -> Any:
    """A training step: mean cross entropy of integer labels, AdamWeightDecay on every weight."""

    class Loss(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = net
            self.one_hot, self.loss = ops.OneHot(), ops.SoftmaxCrossEntropyWithLogits()
            self.on, self.off = Tensor(1.0), Tensor(0.0)
            self.mean = ops.ReduceMean()

        def construct(self, *inputs):
            losses, _ = self.loss(self.net(*inputs[:-1]), self.one_hot(inputs[-1], classes, self.on, self.off))
            return self.mean(losses)

    loss = Loss()
    return nn.TrainOneStepCell(loss, nn.AdamWeightDecay(loss.trainable_params(), learning_rate=1e-3, weight_decay=0.01))


def _resnet(batch: int = 1, size: int = 224) -> tuple[Any, tuple[Any, ...]]:
    class Network(nn.Cell):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = nn.Conv2d(3, 64, 7, 2, pad_mode="pad", padding=3), nn.BatchNorm2d(64)
            self.relu, self.pool = ops.ReLU(), nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
            blocks, inputs = [], 64
            for stage, count in enumerate((3, 4, 6, 3)):
                for index in range(count):
                    stride = 2 if stage and not index else 1
                    blocks.append(_bottleneck(inputs, 64 << stage, stride, projected=not index))
                    inputs = 4 * (64 << stage)
            self.blocks = nn.CellList(blocks)
            self.mean, self.head = ops.ReduceMean(), nn.Dense(inputs, 1000)

        def construct(self, image):
            x = self.pool(self.relu(self.norm(self.stem(image))))
            for block in self.blocks:
                x = block(x)
            return self.head(self.mean(x, (2, 3)))

    return Network().set_train(False), (Tensor(np.ones((batch, 3, size, size), np.float32)),)


def _bottleneck(inputs: int, channels: int, stride: int, projected: bool) -> Any:
    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            outputs = 4 * channels
            self.a, self.a_norm = nn.Conv2d(inputs, channels, 1), nn.BatchNorm2d(channels)
            self.b = nn.Conv2d(channels, channels, 3, stride, pad_mode="pad", padding=1)
            self.b_norm = nn.BatchNorm2d(channels)
            self.c, self.c_norm = nn.Conv2d(channels, outputs, 1), nn.BatchNorm2d(outputs)
            self.relu, self.projected = ops.ReLU(), projected
            if projected:
                self.shortcut, self.shortcut_norm = nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)

        def construct(self, x):
            y = self.relu(self.a_norm(self.a(x)))
            y = self.relu(self.b_norm(self.b(y)))
            shortcut = self.shortcut_norm(self.shortcut(x)) if self.projected else x
            return self.relu(self.c_norm(self.c(y)) + shortcut)

    return Block()


def _bottleneck_training(batch: int = 8, size: int = 56, classes: int = 10) -> tuple[Any, tuple[Any, ...]]:
    class Network(nn.Cell):
        def __init__(self):
            super().__init__()
            self.block = _bottleneck(256, 64, 1, projected=False)
            self.mean, self.head = ops.ReduceMean(), nn.Dense(256, classes)

        def construct(self, x):
            return self.head(self.mean(self.block(x), (2, 3)))

    image = Tensor(np.ones((batch, 256, size, size), np.float32))
    return _step(Network(), classes).set_train(), (image, Tensor(np.zeros(batch, np.int32)))


def _llama(batch: int = 1, tokens: int = 128) -> tuple[Any, tuple[Any, ...]]:
    hidden, heads, key_heads, inner = 4096, 32, 8, 14336
    size, narrow, group = hidden // heads, key_heads * (hidden // heads), heads // key_heads
    half = size // 2
    angles = np.tile(np.arange(tokens)[:, None] * 500000.0 ** (-np.arange(half) / half), 2)

    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            dense = {"query": (hidden, hidden), "key": (hidden, narrow), "value": (hidden, narrow)}
            dense |= {"output": (hidden, hidden), "gate": (hidden, inner), "up": (hidden, inner)}
            for name, (rows, columns) in (dense | {"down": (inner, hidden)}).items():
                setattr(self, name, nn.Dense(rows, columns, has_bias=False, weight_init="ones"))
            self.first, self.second = (Parameter(Tensor(np.ones(hidden, np.float32)), name=n) for n in ("g1", "g2"))
            self.cos, self.sin = (Tensor(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
            self.causal = Tensor(np.triu(np.full((tokens, tokens), np.finfo(np.float32).min, np.float32), 1))
            self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()
            self.softmax, self.silu, self.rsqrt = ops.Softmax(-1), nn.SiLU(), ops.Rsqrt()
            self.mean, self.concat = ops.ReduceMean(keep_dims=True), ops.Concat(-1)
            self.reshape, self.transpose, self.broadcast = ops.Reshape(), ops.Transpose(), ops.BroadcastTo

        def norm(self, x, gamma):
            return x * self.rsqrt(self.mean(x * x, -1) + 1e-5) * gamma

        def in_heads(self, x, count):
            return self.transpose(self.reshape(x, (batch, tokens, count, size)), (0, 2, 1, 3))

        def rotated(self, x):
            turned = self.concat((-x[..., half:], x[..., :half]))
            return x * self.cos + turned * self.sin

        def repeated(self, x):
            apart = self.reshape(x, (batch, key_heads, 1, tokens, size))
            spread = self.broadcast((batch, key_heads, group, tokens, size))(apart)
            return self.reshape(spread, (batch, heads, tokens, size))

        def construct(self, x):
            y = self.norm(x, self.first)
            query, key = (
                self.rotated(self.in_heads(self.query(y), heads)),
                self.rotated(self.in_heads(self.key(y), key_heads)),
            )
            value = self.repeated(self.in_heads(self.value(y), key_heads))
            weights = self.softmax(self.scores(query, self.repeated(key)) * (1 / 11.3137085) + self.causal)
            mixed = self.reshape(self.transpose(self.mix(weights, value), (0, 2, 1, 3)), (batch, tokens, hidden))
            x = x + self.output(mixed)
            y = self.norm(x, self.second)
            return x + self.down(self.silu(self.gate(y)) * self.up(y))

    return Block(), (Tensor(np.ones((batch, tokens, hidden), np.float32)),)


NETWORKS = {
    "bert_encoder": _bert,
    "bert_training": lambda: _bert(batch=2, training=True),
    "resnet_inference": _resnet,
    "bottleneck_training": _bottleneck_training,
    "llama_block": _llama,
}
