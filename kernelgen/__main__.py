"""``python -m kernelgen compile|verify|show|certify|tune FILE_OR_DIR...``."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.progress import Progress

import kernelgen
from kernelgen import options
from kernelgen.ascend_package import make_kit
from kernelgen.checker import Certificate
from kernelgen.checker import certify as certificate_of
from kernelgen.compilation import compile_files as compile_over
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.read import load_desc
from kernelgen.composite.specialize import specialize
from kernelgen.composite.user_operators import operators_in
from kernelgen.driver import compile as compile_desc
from kernelgen.errors import ArgumentError, BackendUnavailable, KernelgenError
from kernelgen.farm import Journal, crew_of
from kernelgen.machines.gpu.timed import MACHINES
from kernelgen.plan import Plan
from kernelgen.samples.inputs import bind_symbols, draw
from kernelgen.system import cores
from kernelgen.system import exit_codes as command_line
from kernelgen.system.bounded_io import json_value, read_text, write_whole
from kernelgen.system.escape import lines
from kernelgen.targets import Target, find_target
from kernelgen.targets.gpu.launch.device import NoDevice, find_device
from kernelgen.tuning.tune import by_model
from kernelgen.tuning.tune import tune as tune_kernel
from kernelgen.verify import Record, Status, verify_files
from kernelgen.verify.pool import Job
from kernelgen.verify.record import sizes_run, summary

NO_MODULES: list[str] = []
EXECUTOR_HELP = "who works: processes[:N], dask://HOST:PORT, or package.module:function that gives an Executor"
SUFFIXES = (".info", ".json", ".info_failed", ".failed")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text: a page of help needs no rich
    help=f"The kernel generator on composite JSON files.\n\n{command_line.EXIT_CODES}",
)
Files = Annotated[list[Path], typer.Argument(help="composite JSON files, or directories of them", exists=True)]
TargetName = Annotated[
    str, typer.Option(help="python, cpu, gpu[:sm_86|hip|opencl], ascend[:MACHINE], or a dotted module name")
]
Modules = Annotated[
    list[str], typer.Option("--operators", help="a module of yours whose operators the files may hold; may be repeated")
]
Output = Annotated[Path | None, typer.Option("--json", help="write the results to this file")]


@app.command()
def verify(
    files: Files,
    target: TargetName = "cpu",
    jobs: Annotated[int, typer.Option(min=1, help="worker processes")] = cores.core_count(),
    json_out: Output = None,
    limit_seconds: Annotated[float, typer.Option(min=0.1, help="time limit per file")] = 120.0,
    memory_mb: Annotated[int, typer.Option(min=1, help="larger kernels are scaled down to this")] = 256,
    seed: Annotated[int, typer.Option(help="of the drawn inputs")] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="look at the finished nests with the independent checker")
    ] = False,
    device: Annotated[
        bool, typer.Option("--device", help="run on the CUDA device in place of the interpreter")
    ] = False,
    guard: Annotated[
        bool, typer.Option("--guard", help="cpu: run with every array against pages that nobody may touch")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="a file of the same inputs and outputs: what the results should be", exists=True)
    ] = None,
    executor: Annotated[str | None, typer.Option(help=EXECUTOR_HELP)] = None,
    journal: Annotated[
        Path | None, typer.Option(help="a file that keeps records as they come: the same command goes on from there")
    ] = None,
    operators: Modules = NO_MODULES,
) -> None:
    """Compiles each file, runs it, and compares with what it means. Exit code 1 if any file failed."""
    check_before(target, json_out)
    operators_in(operators)
    if device:
        check_device(target)
    if guard and target != "cpu":
        raise ArgumentError(f"--guard: kernels for {target} do not run on this machine's pages; --target cpu")
    paths = described_files(files)
    if against and len(paths) > 1:
        raise ArgumentError(f"--against compares one file with another, {len(paths)} were given")
    threads = max(1, options.thread_count() // jobs)
    job = Job(target, seed, limit_seconds, memory_mb << 20, threads, check, device, guard, tuple(operators))
    check_folder("--journal", journal)
    with (
        crew_of(executor, jobs) as crew,
        Journal(journal) as kept,
        Progress(transient=True, disable=not sys.stderr.isatty()) as progress,
    ):
        task = progress.add_task("verify", total=len(paths))
        records = verify_files(paths, job, jobs, lambda record: progress.advance(task), against, crew, kept)
    if json_out:
        write_json(json_out, report(records, target))
    for record in records:
        if record.status is Status.FAILED:
            say(f"{record.name}: {record.reason}: {record.message}")
    say(sizes_run(records))
    say(summary(records))
    raise typer.Exit(any(record.status is Status.FAILED for record in records))


@app.command(name="compile")
def compile_files(
    files: Files,
    target: TargetName = "cpu",
    json_out: Output = None,
    plan: Annotated[Path | None, typer.Option(help="follow the choices in this file", exists=True)] = None,
    dump_plan: Annotated[Path | None, typer.Option(help="write the choices that were followed to this file")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="ascend: a folder for text, kernel_meta and launch script")
    ] = None,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="with --output: a run in the simulator, its pipes over time, its data")
    ] = False,
    operators: Modules = NO_MODULES,
    executor: Annotated[str | None, typer.Option(help=EXECUTOR_HELP)] = None,
) -> None:
    """Compiles each file and says how long each stage took. Exit code 1 if any was refused."""
    check_before(target, json_out)
    known = operators_in(operators)
    if output is not None:
        if json_out or plan or dump_plan:
            raise ArgumentError("--output stands alone: no --json, --plan or --dump-plan")
        descs = [(path.name, load_desc(path, known)) for path in described_files(files)]
        raise typer.Exit(int(write_kits(descs, find_target(target), output, timeline)))
    paths = described_files(files)
    check_folder("--dump-plan", dump_plan)
    if len(paths) > 1 and (plan or dump_plan):
        raise ArgumentError(f"a plan is one kernel's, {len(paths)} files were given")
    given = read_plan(plan) if plan else None
    if executor and (plan or dump_plan):
        raise ArgumentError("--executor: a plan is read and written here")
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        if executor:
            found = compile_over(paths, target, operators, stack.enter_context(crew_of(executor)))
        else:
            readers = [(path.name, partial(load_desc, path, known)) for path in paths]
            found = compile_here(readers, target, given, dump_plan)
        for row in found:
            rows.append(row)
            say(f"{row['name']}: {row.get('message') or milliseconds_of(row)}")
    if json_out:
        write_json(json_out, {"target": target, "versions": versions(), "records": rows})
    raise typer.Exit(any(row["status"] == "refused" for row in rows))


def compile_here(
    files: Iterable[tuple[str, Callable[[], KernelDesc]]], target: str, plan: Plan | None, dump_plan: Path | None
) -> Iterator[dict[str, Any]]:
    """A row for each of ``files``, a name and what reads it, compiled for a ``target`` in this process; a ``plan`` is followed,
    and the choices that were are written to ``dump_plan``.
    """
    for name, read in files:
        try:
            kernel = compile_desc(read(), target, plan)
            if dump_plan:
                write_json(dump_plan, kernel.plan.to_json())
            yield {"name": name, "status": "compiled", "milliseconds": dict(kernel.resources.milliseconds)}
        except KernelgenError as error:
            yield {"name": name, "status": "refused", "message": str(error)}


def milliseconds_of(row: Mapping[str, Any]) -> str:
    """All stages of a compilation together."""
    return f"{sum(row['milliseconds'].values()):.1f} ms"


def write_kits(descs: Sequence[tuple[str, KernelDesc]], target: Target, folder: Path, rehearse: bool) -> bool:
    """Writes to ``folder`` what a user takes home of each kernel; gives whether any is missing or wrong.

    ``descs`` are file names and descriptions, ``target`` is one for Ascend. With ``rehearse`` each runs in the simulator.
    """
    bad = False
    for name, desc in descs:
        kit = make_kit(desc, target, rehearse)
        kit.write(folder, folder)
        bad = bad or kit.record.status is not Status.PASSED
        scaled = "smaller shapes; " if kit.record.scaled else ""
        found = f"{scaled}{kit.rehearsal.report}" if kit.rehearsal else f"{len(kit.files)} files"
        say(f"{name}: {kit.record.message or found}")
    return bad


@app.command()
def show(
    files: Files,
    target: TargetName = "cpu",
    stage: Annotated[str | None, typer.Option(help="print only this stage")] = None,
    operators: Modules = NO_MODULES,
) -> None:
    """Prints every stage of the compilation, from the statements to the source, and the proof."""
    known = operators_in(operators)
    for path in described_files(files):
        try:
            stages = compile_desc(load_desc(path, known), target).stages
        except KernelgenError as error:
            say(f"{path.name}: {error}", file=sys.stderr)
            raise typer.Exit(1) from error
        if stage is not None and stage not in stages:
            say(f"there is no stage {stage!r}; stages: {', '.join(stages)}", file=sys.stderr)
            raise typer.Exit(1)
        for name, text in stages.items():
            if stage in (None, name):
                say(text if stage else f"---- {name}\n{text}")


@app.command()
def certify(files: Files, target: TargetName = "cpu", json_out: Output = None, operators: Modules = NO_MODULES) -> None:
    """Prints each kernel's certificate: what was proved, and what the independent checker found. Exit code 1 for a fault."""
    check_before(target, json_out)
    known = operators_in(operators)
    certificates: list[Certificate] = []
    for path in described_files(files):
        try:
            desc = load_desc(path, known)
            kernel = compile_desc(desc, target)
        except KernelgenError as error:
            say(f"{path.name}: {error}", file=sys.stderr)
            raise typer.Exit(1) from error
        certificates.append(certificate_of(kernel.nest, kernel.proof.facts, desc))
        say(certificates[-1])
    if json_out:
        write_json(json_out, {"target": target, "certificates": [each.to_json() for each in certificates]})
    raise typer.Exit(any(certificate.fault for certificate in certificates))


@app.command()
def tune(
    file: Annotated[Path, typer.Argument(help="a composite JSON file", exists=True, dir_okay=False)],
    target: TargetName = "cpu",
    machine: Annotated[str, typer.Option(help="gpu: the device whose model compares, " + ", ".join(MACHINES))] = "H200",
    most: Annotated[int, typer.Option(min=1, help="plans to try")] = 100,
    dump_plan: Annotated[Path | None, typer.Option(help="write the fastest plan to this file")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="to search")] = 60.0,
) -> None:
    """Looks for a faster plan: by measuring, or for a GPU by what the model estimates. Prints what was tried."""
    check_folder("--dump-plan", dump_plan)
    if machine not in MACHINES:
        raise ArgumentError(f"--machine {machine}: known are {', '.join(MACHINES)}")
    desc = load_desc(file)
    sizes = bind_symbols(desc)
    compare = by_model(machine, **sizes) if target == "gpu" else None
    inputs = () if compare else draw(specialize(desc, sizes))
    found = tune_kernel(compile_desc(desc, target), inputs, most, compare, seconds)
    for trial in found.trials:
        say(f"{'left out' if trial.ratio is None else f'{trial.ratio:.2f}':>8} {trial.change}")
    say(found.kernel.stages["plan"])
    if dump_plan:
        write_json(dump_plan, found.kernel.plan.to_json())


def say(text: object, file: TextIO | None = None) -> None:
    """Prints what does nothing to the terminal, whatever names are in it."""
    print(lines(str(text)), file=file)


def check_before(target: str, json_out: Path | None) -> None:
    """Refuses a target or a result file that cannot be, before hours of work go into it."""
    find_target(target)
    check_folder("--json", json_out)


def check_device(target: str) -> None:
    """Raises BackendUnavailable, with the reason, for ``--device`` where none is."""
    found = find_device()
    if target != "gpu" or isinstance(found, NoDevice):
        reason = found.reason if isinstance(found, NoDevice) else f"kernels for {target} run on none"
        raise BackendUnavailable(f"--device: {reason}")


def check_folder(option: str, path: Path | None) -> None:
    """Raises ArgumentError for a file to write in a folder that is not there."""
    if path and not path.parent.is_dir():
        raise ArgumentError(f"{option} {path}: there is no folder {path.parent}")


def read_plan(path: Path) -> Plan:
    """The plan in a file. Raises ArgumentError with the path of what is wrong."""
    try:
        return Plan.from_json(json_value(read_text(path, ArgumentError), ArgumentError))
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from error


def described_files(given: Sequence[Path]) -> list[Path]:
    """The files, and the sorted composite JSON files of the directories.

    Raises ArgumentError for a directory without any.
    """
    found: list[Path] = []
    for path in given:
        inside = sorted(p for p in path.iterdir() if p.name.endswith(SUFFIXES)) if path.is_dir() else [path]
        if not inside:
            raise ArgumentError(f"{path} holds no composite JSON files ({', '.join(SUFFIXES)})")
        found += inside
    return found


def report(records: Sequence[Record], target: str) -> dict[str, Any]:
    """The document that ``verify --json`` writes."""
    return {"target": target, "versions": versions(), "records": [record.to_json() for record in records]}


def versions() -> dict[str, str]:
    """What the results depend on."""
    packages = {name: version(name) for name in ("numpy", "islpy", "llvmlite")}
    return {"kernelgen": kernelgen.__version__, "python": platform.python_version(), **packages}


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Writes JSON to a file that appears complete or not at all."""
    write_whole(path, json.dumps(document, indent=1) + "\n", ArgumentError)


def main() -> None:
    """The entry point: whatever goes wrong becomes one line on stderr."""
    command_line.run(app, (KernelgenError,))


if __name__ == "__main__":
    main()
