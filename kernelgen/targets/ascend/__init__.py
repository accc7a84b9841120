"""Ascend: a nest as AscendC, printed, read back, proved and simulated without a chip. docs/ascend.md says what that shows.

Rooms: lower, package, proof.
Reading order: entry, target.

How a generator uses it. Every loop nest becomes statements of :mod:`instructions`, most easily through a builder::

    kernel = KernelBuilder("add_exp", ("x", "y"), tiling=("tiles",))
    x = kernel.global_tensor("x_gm", FLOAT32, "x", kernel.field("tiles") * 256)
    y = kernel.global_tensor("y_gm", FLOAT32, "y", kernel.field("tiles") * 256)
    tile = kernel.local_tensor("tile", FLOAT32, address=0, size=256)
    with kernel.loop("i", 0, kernel.field("tiles")) as i:
        kernel.emit("DataCopy", dst=tile, src=x[i * 256], count=256)
        kernel.emit("Exp", dst=tile, src=tile, mask=64, repeats=4, strides=(1, 1, 8, 8))
        kernel.emit("DataCopy", dst=y[i * 256], src=tile, count=256)
    text = print_kernel(kernel.build())

``emit`` takes the argument names of :mod:`forms`; a tuple becomes the struct of parameters that stands there, a text the
enumerator. This kernel lacks its flags: ``simulate`` says so line by line. A pass that injects them asks three questions of
a ``Call``: ``pipe_of(call, memory_of)``, and of its form which slots are tensors with role ``read`` or ``write``. Statements
are frozen values: a pass builds new ones. ``simulate(text, ...)`` takes the text, never the IR.
"""

from kernelgen.targets.ascend.target import TARGET

__all__ = ["TARGET"]
