"""llvmlite: text to machine code to addresses. The only importer of llvmlite."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, lru_cache
from typing import Any

import llvmlite.binding as llvm

from kernelgen import options
from kernelgen.errors import CodegenError
from kernelgen.native import mapped
from kernelgen.native.elf import linked
from kernelgen.native.library import Library
from kernelgen.native.processor import MATRICES, processor
from kernelgen.targets.cpu.text.host import Host, restricted

LLVM_VERSION = ".".join(str(part) for part in llvm.llvm_version_info)
LINKS = 16
"""How many libraries one linker of LLVM takes before there is a new one. It notes 9 KB of each that it gives back only when
it goes itself; one for each library would take half a millisecond and 160 KB."""

_numbers = itertools.count()


@cache
def detect_host() -> Host:
    """The processor that this process runs on, or the level of processors that it is to be used as.

    Raises ArgumentError for a level that it does not reach.
    """
    level = options.processor_level()
    return restricted(level, _here()) if level else _here()


@cache
def _here() -> Host:
    _initialize()
    features = llvm.get_host_cpu_features()
    granted = processor().flags >= MATRICES
    found = (name for name, present in features.items() if present and (granted or not name.startswith("amx-")))
    return Host(llvm.get_host_cpu_name(), frozenset(found))


def compile_object(source: str, host: Host) -> bytes:
    """LLVM assembly to a relocatable object; ``CodegenError`` with the source when LLVM rejects it."""
    with _optimized(source, host) as module:
        return _machine(host).emit_object(module)


def machine_text(source: str, host: Host) -> str:
    """The same machine code as text, to look at what became of a loop."""
    with _optimized(source, host) as module:
        return _machine(host).emit_assembly(module)


@contextmanager
def _optimized(source: str, host: Host) -> Generator[Any]:  # llvmlite has no types
    """The module, in a context of its own that goes with all that LLVM made for it."""
    _initialize()
    machine = _machine(host)
    with llvm.create_context() as context, _rejecting(source), llvm.parse_assembly(source, context) as module:
        module.triple = host.triple or llvm.get_process_triple()
        module.data_layout = str(machine.target_data)
        module.verify()
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        _passes().run(module, builder)
        yield module


@contextmanager
def _rejecting(source: str) -> Generator[None]:
    try:
        yield
    except RuntimeError as error:
        raise CodegenError(f"LLVM rejected the module: {error}", source) from error


def link(image: bytes, exports: tuple[str, ...], symbols: Mapping[str, int]) -> Library:
    """Loads the object ``image``, whose functions ``exports`` are asked for.

    ``symbols`` are the external functions that the process does not export itself.
    """
    if mapped.is_supported():
        return mapped.load_code(linked(image, exports), symbols)
    return linked_by_llvm(image, exports, symbols)


def linked_by_llvm(image: bytes, exports: tuple[str, ...], symbols: Mapping[str, int]) -> Library:
    """As :func:`link` with ``image``, ``exports`` and ``symbols``, for machines whose objects we do not load
    ourselves.
    """
    _initialize()
    builder = llvm.JITLibraryBuilder().add_current_process().add_object_img(image)
    for name, address in symbols.items():
        builder = builder.import_symbol(name, address)
    for name in exports:
        builder = builder.export_symbol(name)
    number = next(_numbers)
    linker = _linker(number // LINKS)
    tracker = builder.link(linker, f"kernel{number}")
    library = Library({name: tracker[name] for name in exports})
    # Held from outside, so that the code goes before its linker even where both are in one cycle of garbage.
    weakref.finalize(library, _unload, tracker, linker).atexit = False  # daemon threads may still run it then
    return library


def _unload(tracker: Any, linker: Any) -> None:
    tracker.close()


@cache
def _passes() -> Any:  # llvmlite has no types
    """The few passes that explicit vector code needs: promote slots, simplify. LLVM never gives them back.

    Equal values are shared in our own IR and by LLVM's selection of instructions. Its pass for that, NewGVN, saves under 2 % of
    code and no time, and ends the process on some kernels by an assertion of its own.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _machine(host: Host) -> Any:  # llvmlite has no types
    features = ",".join(f"+{name}" for name in sorted(host.features))
    if host == _here():
        features = llvm.get_host_cpu_features().flatten()  # says too what this machine lacks of its model's features
    if host.triple:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(host.triple) if host.triple else llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=host.cpu, features=features, opt=3, reloc="pic", codemodel="small")


@lru_cache(maxsize=1)
def _linker(generation: int) -> Any:  # llvmlite has no types
    """The linker of a generation of libraries; earlier ones live as long as one of their libraries."""
    return llvm.create_lljit_compiler()


def _inside_llvm() -> AbstractContextManager[Any]:
    """The lock that llvmlite holds while a thread runs LLVM."""
    return getattr(llvm.ffi.lib, "_lock", nullcontext())


# A child that is forked while another thread is inside LLVM would find its locks taken for ever.
os.register_at_fork(
    before=lambda: _inside_llvm().__enter__(),
    after_in_parent=lambda: _inside_llvm().__exit__(None, None, None),
    after_in_child=lambda: _inside_llvm().__exit__(None, None, None),
)
