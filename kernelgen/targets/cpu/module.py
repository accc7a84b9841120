"""llvmlite: text to machine code to addresses. The only importer of llvmlite."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from kernelgen.errors import CodegenError
from kernelgen.targets.cpu.host import Host

LLVM_VERSION = ".".join(str(part) for part in llvm.llvm_version_info)
_link_names = (f"kernel{number}" for number in itertools.count())


@dataclass(frozen=True)
class Library:
    """Linked machine code. It stays loaded as long as this object lives."""

    addresses: Mapping[str, int]
    tracker: Any


@cache
def detect_host() -> Host:
    """The processor that this process runs on."""
    _initialize()
    features = llvm.get_host_cpu_features()
    return Host(llvm.get_host_cpu_name(), frozenset(name for name, present in features.items() if present))


def compile_object(source: str, host: Host) -> bytes:
    """LLVM assembly to a relocatable object; ``CodegenError`` with the source when LLVM rejects it."""
    return _machine(host).emit_object(_optimized(source, host))


def machine_text(source: str, host: Host) -> str:
    """The same machine code as text, to look at what became of a loop."""
    return _machine(host).emit_assembly(_optimized(source, host))


def _optimized(source: str, host: Host) -> Any:  # llvmlite has no types
    _initialize()
    machine = _machine(host)
    try:
        module = llvm.parse_assembly(source)
        module.triple = llvm.get_process_triple()
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM rejected the module: {error}", source) from error
    _optimize(module, machine)
    return module


def link(image: bytes, exports: tuple[str, ...], symbols: Mapping[str, int]) -> Library:
    """Loads an object; ``symbols`` are the external functions that the process does not export itself."""
    _initialize()
    builder = llvm.JITLibraryBuilder().add_current_process().add_object_img(image)
    for name, address in symbols.items():
        builder = builder.import_symbol(name, address)
    for name in exports:
        builder = builder.export_symbol(name)
    tracker = builder.link(_linker(), next(_link_names))
    return Library({name: tracker[name] for name in exports}, tracker)


def function_address(function: Any) -> int:  # any ctypes function pointer
    """Where a ctypes function lies."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _optimize(module: Any, machine: Any) -> None:  # llvmlite has no types
    """The few passes that explicit vector code needs: promote slots, simplify, share."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _machine(host: Host) -> Any:  # llvmlite has no types
    features = ",".join(f"+{name}" for name in sorted(host.features))
    if host == detect_host():
        features = llvm.get_host_cpu_features().flatten()  # says too what this machine lacks of its model's features
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=host.cpu, features=features, opt=3, reloc="pic", codemodel="small")


@cache
def _linker() -> Any:  # llvmlite has no types
    return llvm.create_lljit_compiler()
