"""Which member of a band becomes vector lanes on a CPU: the one along which memory is touched most contiguously.

    y[n, c] = f(x[c, n]),  c < 3    ->    c; vector n    writes three elements apart: better than three of sixteen lanes

A member that is shorter than a vector, and no part of one, leaves the place to one along which something is read as it lies,
if nothing has to be gathered there: elements a few places apart are loaded as whole vectors.
"""

from __future__ import annotations

from kernelgen.poly.mapping.axis import Axis, Band, element_stride
from kernelgen.tensor.dims import Sym

NEAR = 4
"""The distance of neighbouring lanes up to which they are parts of whole vectors."""


def vector_last(band: Band, lanes: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The members of a ``band`` with the best one for vectors of so many ``lanes`` last, the others in order; and why."""
    order = tuple(range(len(band.axes)))
    if len(order) == 1:
        return order, ()
    if not band.permutable:
        return order, ("the members may not change places",)
    scores = [axis.contiguity() for axis in band.axes]
    best = max(order, key=lambda k: (scores[k], k))
    listed = ", ".join(f"{band.axes[k].name} {scores[k]:+d}" for k in order)
    reason = f"contiguity {listed}"
    if not _fills(band.axes[best], lanes):
        short, others = best, [k for k in order if _replaces(band.axes[k], lanes)]
        best = max(others, key=lambda k: (scores[k], k), default=best)
        reason += f"; {band.axes[short].name} fills no vector" if best != short else ""
    return (*order[:best], *order[best + 1 :], best), (reason,)


def _fills(axis: Axis, lanes: int) -> bool:
    """Whether it is as long as a vector, or as an even part of one."""
    return all(isinstance(extent, Sym) or extent >= lanes or lanes % extent == 0 for extent in axis.extents)


def _replaces(axis: Axis, lanes: int) -> bool:
    """Whether no dependence crosses it, it fills vectors, and all reads along it are near, some of them contiguous."""
    steps = [element_stride(read, name) for statement, name in axis.follows for read in statement.reads]
    is_near = all(step is not None and 0 <= step <= NEAR for step in steps)
    return axis.coincident and axis.is_longer_than(lanes - 1) and is_near and 1 in steps
