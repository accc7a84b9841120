"""Steps that append assignments to inputs."""

from __future__ import annotations

from tests.random_kernels.values import Value
from tests.random_kernels.writer import Writer


def assign(w: Writer) -> None:
    """Assign and InplaceAssign, of computed values and constants, to whole inputs."""
    target = w.one(w.inputs)
    if target.name in w.protected:
        return
    shapes = (target.shape, (), (1,))
    source = w.pick(lambda v: v.shape in shapes and v.dtype == target.dtype and w.is_finite(v))
    source = source if w.number(0, 9) else w.constant(target.dtype)
    if source is None or source.tensor == target:
        return
    position = next((k for k, v in enumerate(w.values) if v.tensor == target), None)
    destination = Value(target, source.bound, source.error)
    if position is not None:
        w.values[position] = destination
    w.errors[target.name] = max(source.error, w.errors.get(target.name, 0))
    other = w.pick(w.is_finite)
    if other is None or w.chance():
        w.op("Assign", (destination, source), (target.shape, target.dtype), source.bound, source.error)
        return
    operands, fake = (destination, source, other), w.chance(3)
    made = w.op("InplaceAssign", operands, (other.shape, other.dtype), other.bound, other.error, fake_output=fake)
    if fake:  # nobody reads it, and the kernel does not return it
        w.hidden.add(made.tensor.name)
        w.values = [v for v in w.values if v.tensor != made.tensor]
