"""Ascend: a nest as AscendC, printed, read back, proved and simulated without a chip. docs/ascend.md says what that shows.

Reading order: errors, types (names of pipes, memories, positions), machine (what a machine is), dtype_rules, machines
(the five), platform_config (a user's ``.ini``); expressions (scalars), instructions (the IR), forms (the fixed subset
of calls), pipes (which pipe executes a call), conversions (what C++ does not convert by itself), build (kernels by
name), printer; tokens, read_expression, scopes (names), reader; simulate (the room that runs the text); published
(measurements), fit (the time model's constants), timeline (trace and picture); lower (the room that makes a kernel of
a nest), launch (blocks of a launch), effort (how long a run will take), features (what a run does, in words), bounds
(what a scalar can be), claims (what instructions claim is proved), entry (a kernel in the simulator), launches
(launches that show what an order needs), minimal (which flags a kernel does without); launch_on_card (the script for
owners of a card), meta (kernel_meta, the files of a kernel), target.

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
