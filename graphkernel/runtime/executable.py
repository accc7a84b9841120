"""The callable: lends every call a frame of buffers, runs the actions, and hands out results of its own."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from operator import length_hint
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphkernel.errors import InputError, PackageError, RuntimeFailure
from graphkernel.runtime.failures import PASSED_ON, step_failure
from graphkernel.runtime.inputs.arrays import Array, apart
from graphkernel.runtime.inputs.named_inputs import are_named, inputs_of_call
from graphkernel.runtime.invocation import Frame, Layout, make_frame
from graphkernel.runtime.memory import HOST, Memory
from graphkernel.runtime.steps.program import Program, written_over
from graphkernel.runtime.tables.native_run import WholeRun, run
from graphkernel.runtime.tables.watch import SessionFailure
from kernelgen.errors import ArgumentError
from kernelgen.native.team import Limited
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.bind import bind_all
from kernelgen.tensor.boxes import as_array, as_values
from kernelgen.tensor.types import TensorType, is_object

if TYPE_CHECKING:
    from graphkernel.communication.groups import Communicators
    from graphkernel.report.report import Report
    from graphkernel.runtime.plan.plan import Plan
    from kernelgen.tensor.graph import Graph

KEPT_SHAPES = 8  # sets of input shapes for which buffers are kept


class Executable:
    """A compiled graph. ``exe(*arrays) -> tuple``: numpy gives numpy, a DLPack array gives arrays of its library.

    Inputs may be named, ``exe(x=x)`` or ``exe({"encoder/x": x})``: ``inputs`` and ``outputs`` tell names and types.
    ``exe(x, out=(y,))`` writes into given arrays. Inputs that the graph assigns to are changed in place: their new content
    is a result, which is the array that was given.
    Several threads may call at once: each call has a frame of its own. ``report`` tells what runs where, and why.
    A pickle holds the optimized graph; whoever reads it compiles that ``again``, mostly from kernels kept on disk.
    ``exe.save(path)`` writes all of it as a package, which ``graphkernel.load_compiled`` reads without a compiler.
    """

    _plan: Callable[[], Plan]
    _report: Callable[[], Report]

    def __init__(self, plan: Plan, report: Report, memory: Memory = HOST) -> None:
        self.replaced(plan, report)
        self._start(plan.program, memory)

    @staticmethod
    def of(program: Program, plan: Callable[[], Plan], report: Callable[[], Report]) -> Executable:
        """Of a program, whose plan and report are made when somebody asks for them."""
        made = Executable.__new__(Executable)
        made._plan, made._report = plan, report
        made._start(program, HOST)
        return made

    def _start(self, program: Program, memory: Memory) -> None:
        self.memory = memory
        self.again: Callable[[], Executable] | None = None
        self.packer: Callable[[Executable, str | PathLike[str]], None] | None = None
        self.threads: int | None = None
        self.communicators: Communicators = None
        self._run_from_now_on(program)

    def _run_from_now_on(self, program: Program) -> None:
        self.program = program
        self._frames: OrderedDict[Hashable, list[Frame]] = OrderedDict()
        self._free: dict[Hashable, list[Frame]] = {}  # those that are one table, by shapes where these may differ
        self._has_symbols = any(given.type.symbols for given in program.inputs)
        self._slots = tuple(given.slot for given in program.inputs)
        self._written_over = frozenset(written_over(program)) if self.memory.kind is np.ndarray else frozenset[int]()
        inputs = enumerate(given.type.dtype for given in program.inputs)
        self._objects = tuple(position for position, of in inputs if is_object(of))
        self._gives_objects = any(is_object(result.type.dtype) for result in program.results)

    def replaced(self, plan: Plan, report: Report) -> None:
        """From now on these are its plan and its report."""
        self._plan, self._report = lambda: plan, lambda: report
        for kept in ("plan", "report"):
            vars(self).pop(kept, None)

    @cached_property
    def plan(self) -> Plan:
        """The steps that it runs, with the graph that they compute."""
        return self._plan()

    @cached_property
    def report(self) -> Report:
        """What runs where, and why."""
        return self._report()

    def __repr__(self) -> str:
        return f"<Executable {self.report.summary}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()  # pyright: ignore[reportPrivateUsage]  # a protocol of notebooks

    def __reduce__(self) -> tuple[Callable[[], Executable], tuple[()]]:
        if self.again is None:
            raise RuntimeFailure(
                "this executable is no graph's that was compiled; pickle the graph and compile it there"
            )
        return self.again, ()

    def over(self, communicators: Communicators) -> Executable:
        """This executable on one rank of several: what it gives to other processes goes over a communicator.

        One for all groups of the graph, or a mapping from their names. See :mod:`graphkernel.communication`.
        """
        made = copy(self)
        made.communicators = communicators
        made._run_from_now_on(self.program.over(communicators))
        return made

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a package: graph, machine code, weights, see :mod:`graphkernel.packages`. It appears whole or not at all.

        Raises ``PackageError`` for what runs elsewhere than on this machine's CPU, or for a file that cannot be written.
        """
        if self.packer is None:
            raise PackageError("this executable is no graph's that was compiled; save the graph")
        self.packer(self, path)

    @property
    def graph(self) -> Graph:
        """The graph that it computes."""
        return self.plan.graph

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple(given.name for given in self.program.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in order."""
        return tuple(result.name for result in self.program.results)

    @property
    def inputs(self) -> dict[str, TensorType]:
        """The type of each input by name, in order."""
        return {given.name: given.type for given in self.program.inputs}

    @property
    def outputs(self) -> dict[str, TensorType]:
        """The type of each output by name, in order."""
        return {result.name: result.type for result in self.program.results}

    def __call__(self, /, *arrays: object, out: Sequence[Any] | None = None, **named: object) -> tuple[Any, ...]:
        """Runs the graph: on arrays in the order of its inputs, by keywords, or on one mapping from names to arrays.

        Raises ``InputError`` when an array, or one of ``out``, does not fit, and ``RuntimeFailure``, which names the
        operator, when one fails on what it is given: an index beyond its axis, the greatest of no elements.
        """
        if self._free and not named:
            found = self._at_once(arrays, out)
            if found is not None:
                return found
        memory, kind = self.memory, self.memory.kind
        if named or (arrays and not isinstance(arrays[0], kind) and are_named(arrays, named)):
            arrays = inputs_of_call(self.input_names, arrays, named)
        inputs: list[Any] = [a if isinstance(a, kind) else self._taken(a, i) for i, a in enumerate(arrays)]
        if self._objects:
            self._take_objects(inputs, arrays)
        for position, _ in self.program.aliases:
            self._check_writeable(self.program.inputs[position].name, inputs[position : position + 1])
        key = memory.key(inputs)
        frame = self._borrow(key, inputs)
        results = self.run_in(frame, inputs, None if out is None else self._checked_outputs(out, frame.outputs))
        free = self._frames.setdefault(key, [])
        free.append(frame)
        if frame.whole is not None and frame.whole.is_fast:
            self._free[tuple([array.shape for array in inputs]) if self._has_symbols else ()] = free
        if out is not None:
            return tuple(out)
        give = memory.giver(arrays)
        if self._gives_objects:
            return self._given_objects(results, give)
        return results if give is None else tuple(map(give, results))

    def _at_once(self, arrays: Sequence[Any], out: Sequence[Any] | None) -> tuple[Any, ...] | None:
        """Runs on arrays as those of an earlier call, when all steps are kernels; None where this is not so."""
        try:
            free = self._free[tuple([array.shape for array in arrays]) if self._has_symbols else ()]
            frame = free.pop()
        except (KeyError, IndexError, AttributeError, TypeError):  # other shapes; other threads have all; no arrays
            return None
        whole = cast("WholeRun", frame.whole)
        try:
            if out is None:
                out = (whole.make(),) if whole.make else whole.outputs()
            elif out.__class__ is not tuple or len(out) != len(whole.makers) or whole.allocated or self.program.aliases:
                return None
            if self.threads is None or not whole.is_parallel:
                whole.fast(*arrays, *out)
            else:
                with Limited(self.threads):
                    whole.fast(*arrays, *out)
            results = whole.results(arrays, out) if whole.allocated or self.program.aliases else out
        except ArgumentError:
            return None
        except SessionFailure as failure:
            raise step_failure(self.plan.steps[failure.step], failure.error) from failure.error
        finally:
            free.append(frame)
        return self._given_objects(results, None) if self._gives_objects else cast("tuple[Any, ...]", results)

    def capture(self, *arrays: object) -> Any:  # a captured plan, where there are such
        """The plan as one CUDA graph. Raises ``RuntimeFailure``: this one does not run on a device."""
        raise RuntimeFailure(
            "only a plan on a CUDA device can be captured: compile with target='gpu' where there is one"
        )

    def _take_objects(self, inputs: list[Any], given: Sequence[object]) -> None:
        """Texts, lists of tensors and the like are taken as they are."""
        for position in self._objects:
            inputs[position : position + 1] = [as_array(given[position], self.program.inputs[position].type)]

    def _given_objects(self, results: Sequence[Any], give: Callable[[Any], Any] | None) -> tuple[Any, ...]:
        values = as_values(results, [result.type for result in self.program.results])
        kept = [give is None or array.dtype.hasobject for array in results]
        return tuple(x if keep or give is None else give(x) for x, keep in zip(values, kept, strict=True))

    def _taken(self, array: object, position: int) -> Array:
        known = self.program.inputs[position : position + 1]
        if position in self._objects:
            return as_array(array, known[0].type)
        return self.memory.take(array, known[0].name if known else str(position))

    def _borrow(self, key: Hashable, inputs: Sequence[Array]) -> Frame:
        """A frame that no other call uses: one that is free, or a new one."""
        try:
            self._frames.move_to_end(key)
            return self._frames[key].pop()
        except (KeyError, IndexError):  # these shapes are new, or other threads have all of their frames
            pass
        symbols = bind_all(self.program.kinds, self.program.derived, inputs)
        while len(self._frames) >= KEPT_SHAPES:
            with contextlib.suppress(KeyError):
                self._frames.popitem(last=False)
            self._free.clear()  # those of shapes that are still kept come back with their next call
        return make_frame(self.program, symbols, self.memory)

    def run_in(self, frame: Frame, inputs: Sequence[Array], out: Sequence[Array] | None = None) -> tuple[Array, ...]:
        """Runs on ``inputs`` in a ``frame`` that nobody else uses meanwhile, on as many threads as were asked for;
        results go to ``out``, if it is given.
        """
        if self.threads is None:
            return self._run(frame, inputs, out)
        with Limited(self.threads):
            return self._run(frame, inputs, out)

    def _run(self, frame: Frame, inputs: Sequence[Array], out: Sequence[Array] | None) -> tuple[Array, ...]:
        if frame.whole is not None:
            return self._run_whole(frame.whole, inputs, out)
        slots = frame.slots.copy()
        given = apart(inputs, self._written_over) if self._written_over else inputs
        for slot, array in zip(self._slots, given, strict=True):
            slots[slot] = array
        if out is not None:
            for slot, position in frame.results:
                slots[slot] = out[position] if _writable_apart(out[position], inputs) else None
        for slot, layout in frame.fresh:
            if slots[slot] is None:
                slots[slot] = self.memory.empty(*layout)
        running = iter(frame.actions)
        try:
            for action in running:
                action(slots)
        except PASSED_ON:
            raise
        except Exception as error:
            raise self._failure(frame, len(frame.actions) - 1 - length_hint(running), error) from error
        results = [slots[end.slot].copy() if end.copy else slots[end.slot] for end in self.program.outputs]
        self._store(results, inputs)
        if out is not None:
            _write_out(out, results)
        return tuple(results)

    def _failure(self, frame: Frame, number: int, error: Exception) -> RuntimeFailure:
        """What is told of an error in the action of this number."""
        if isinstance(error, SessionFailure):
            return step_failure(self.plan.steps[error.step], error.error)
        return step_failure(self.plan.steps[frame.firsts[number]], error)

    def _run_whole(self, whole: WholeRun, inputs: Sequence[Array], out: Sequence[Array] | None) -> tuple[Array, ...]:
        """Runs in a frame that is one table."""
        wanted = [None if out is None else out[number] for number in whole.made]
        pairs = zip(wanted, whole.makers, strict=True)
        made = tuple([w if w is not None and _writable_apart(w, inputs) else make() for w, make in pairs])
        try:
            whole.watch.begin()
            run(whole.table, (*inputs, *made))
            whole.watch.check()
            results = whole.results(inputs, made)
        except SessionFailure as failure:
            raise step_failure(self.plan.steps[failure.step], failure.error) from failure.error
        if out is not None:
            _write_out(out, results)
        return results

    def _store(self, results: list[Array], inputs: Sequence[Array]) -> None:
        """Inputs that the graph assigns to take their new content, unless a kernel wrote it there, and are the results."""
        for position, number in self.program.aliases:
            if not np.may_share_memory(inputs[position], results[number]):
                np.copyto(inputs[position], results[number])
            results[number] = inputs[position]

    def _check_writeable(self, name: str, given: Sequence[Array]) -> None:
        """Refuses an input that the graph assigns to and that cannot be written; too few inputs are told of elsewhere."""
        if given and not self.memory.is_writeable(given[0]):
            raise InputError(f"input {name} is assigned to by the graph, but its array is not writeable; give a copy")

    def _checked_outputs(self, out: Sequence[Any], layouts: Sequence[Layout | None]) -> list[Array]:
        """The arrays of ``out=``; whether they fit what depends on data is seen when that is there."""
        given = sequence_of_outputs(out, self.memory.kind)
        if len(given) != len(layouts):
            raise InputError(f"the graph has {len(layouts)} outputs, out= holds {len(given)}")
        arrays = [self.memory.take(array, f"out[{position}]") for position, array in enumerate(given)]
        for position, (array, layout) in enumerate(zip(arrays, layouts, strict=True)):
            _check_output(array, layout, position, self.memory.is_writeable(array))
            for other in range(position):
                if _share_memory(arrays[other], array):
                    raise InputError(f"out[{other}] and out[{position}] share memory; each output needs its own")
        return arrays


def _write_out(out: Sequence[Array], results: Sequence[Array]) -> None:
    """Results go into the arrays of ``out=`` where they do not lie there already."""
    for position, (target, result) in enumerate(zip(out, results, strict=True)):
        if target is not result:
            _check_output(target, (result.shape, result.dtype), position)
            np.copyto(target, result)


def _check_output(array: Array, layout: Layout | None, position: int, is_writeable: bool = True) -> None:
    shape, dtype = layout or (array.shape, array.dtype)
    if array.shape != shape or array.dtype != dtype or not is_writeable:
        found = f"{array.dtype}{list(array.shape)}{'' if is_writeable else ', not writeable'}"
        raise InputError(f"out[{position}] must be a writeable array {dtype}{list(shape)}, got {found}")


def sequence_of_outputs(out: object, kind: type) -> Sequence[Any]:
    """What ``out=`` holds. Raises ``InputError`` for what is no tuple or list, an array of ``kind`` above all."""
    if isinstance(out, kind) or not isinstance(out, tuple | list):
        raise InputError(f"out= takes a tuple of arrays, one for each output: out=(array,), got {type(out).__name__}")
    return cast("Sequence[Any]", out)


def _share_memory(first: Array, second: Array) -> bool:
    return bool(np.may_share_memory(first, second) and np.shares_memory(first, second))


def _writable_apart(given: Array, inputs: Sequence[Array]) -> bool:
    """Whether steps may write into the array at once: it is contiguous and no input lies in it."""
    return given.flags.c_contiguous and not any(np.may_share_memory(given, array) for array in inputs)
