"""What Python, numpy and torch ask of a tensor that has no values while it is traced, and what to write for it."""

from __future__ import annotations

from typing import Any, NoReturn

from graphkernel.errors import FrontendError
from graphkernel.ops.tensor.other_names import SAME, WRITTEN

VALUES = "the values of a traced tensor are known only when the compiled function runs"


class Untraceable:
    """Refuses, with what to write instead, everything that needs the values of a tensor."""

    def __bool__(self) -> bool:
        raise FrontendError("a traced tensor has no truth value: use ops.select for if, and & | ~ for and, or, not")

    def __iter__(self) -> NoReturn:
        raise FrontendError("a traced tensor cannot be iterated over: use ops.split")

    def __len__(self) -> int:
        raise FrontendError("len of a traced tensor may be a symbol: write x.shape[0]")

    def __float__(self) -> float:
        raise FrontendError(f"{VALUES}: write x.astype('float32') for float(x), and ops. where math. stands")

    def __int__(self) -> int:
        raise FrontendError(f"{VALUES}: write x.astype('int32') for int(x), and x.shape[0] for an extent")

    def __index__(self) -> int:
        raise FrontendError(f"{VALUES}, so it cannot count or index: use ops.gather, or numbers that are no tensors")

    def __complex__(self) -> complex:
        raise FrontendError(f"{VALUES}: write ops.complex(real, imaginary)")

    def __round__(self, digits: int | None = None) -> NoReturn:
        raise FrontendError("write ops.round(x)")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise FrontendError(
            "a traced tensor cannot be written into: make a new one with ops.select(mask, value, x) or ops.concat, or "
            "write a whole argument with ops.assign(x, value)"
        )

    def __getattr__(self, name: str) -> NoReturn:
        """For names that a tensor lacks."""
        if name in ("item", "tolist", "numpy", "cpu"):
            raise AttributeError(f"{VALUES}: return the tensor, and call .{name}() on the result")
        raise AttributeError(f"a traced tensor has no {name!r}{_written(name)}")

    def __array_function__(self, function: Any, types: object, args: object, kwargs: object) -> NoReturn:
        """For functions of numpy that are given a tensor."""
        raise FrontendError(f"np.{function.__name__} takes no traced tensor{_written(function.__name__)}")

    @classmethod
    def __torch_function__(cls, function: Any, types: object, args: object = (), kwargs: object = None) -> NoReturn:
        """For functions of torch that are given a tensor, and operators with a tensor of torch on the left."""
        name = getattr(function, "__name__", str(function))
        raise FrontendError(
            f"torch's {name} takes no traced tensor{_written(name)}; tensors of torch come in as arguments, or as numpy arrays"
        )


def _written(name: str) -> str:
    """The end of a message for a name of numpy's or torch's."""
    text = WRITTEN.get(name) or SAME.get(name)
    return f"; write {text}" if text else ""
