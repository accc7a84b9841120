"""The page of whole networks beside onnxruntime, OpenVINO and torch.compile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp, log
from typing import Any, NamedTuple

from docs.markdown import RUNS, page, table
from docs.measured import read
from docs.roofline import Point, roofline

OURS, TORCH = "graphkernel", "torch.compile"
INTRODUCTION = """Networks with random weights, one example at a time, as torch's exporter of scripts writes
them. Every contestant has a process of its own that stays; they are measured in turns while the others sleep. Each is
in its best mode: onnxruntime with threads that spin and with threads that do not (the better counts), OpenVINO for
latency, torch.compile with frozen weights, called from C++. A network where its column is empty was not raced against
it.
`python -m benchmarks.whole_networks FOLDER --json OUT` measures
any folder of ONNX files; `make bench-networks` makes these and measures them."""
TRANSFORMERS = """Twelve at their usual sizes. Encoders read 128 tokens, `gpt2` and `llama` 64; those that decode take one token
with a cache of 128."""
IMAGES = """Networks of torchvision, each for one image of 224 by 224; `inception_v3` sees 299 by 299. The detector,
which ends with the scores of its boxes, sees 320 by 320."""
SOUNDS = """Networks whose convolutions run along one axis, from `benchmarks/peers/sounds_at_size.py`: a second of speech, 300
frames of speech, half a second of sound as rows, a vocoder for 100 frames, eight texts of 200 words, series of 256 and of 4000
numbers."""
QUANTIZED = """BERT-base for 128 tokens and ResNet-50 for one image, in int8 as onnxruntime's tools quantize them: pairs of
QuantizeLinear and DequantizeLinear (`qdq`), operators on integers (`qoperator`), rows quantized at run time (`dynamic`)."""
HONEST = """One thread is measured by the processor time of the process, the median of the rounds: other work on the machine is
not counted. Two threads are measured by the wall, the least time, and at real-time priority, so that both have a core at once
while others wait. The load is that of the machine before a network was measured; what others leave in the caches and take of
the memory's bandwidth slows all contestants alike."""
STARTS = """Starts are milliseconds of processor time from the first import of a library to the first result, in a fresh
process on one thread: cold, with an empty cache of compiled code, and warm, with what the first start left. onnxruntime
and OpenVINO keep nothing. Memory is the most that a process held at a warm start, in MiB."""
STEPS = """Where the time goes: our steps on one thread, the dearest of each network; equal ones are one row. GFLOP/s
are those of products and convolutions, as a share of what multiply-adds reach that wait for nothing. GB/s are those of
operands and results, as a share of a read of memory past the cache; what lies in the cache may be faster. Both limits
were measured in the same run. Starts and steps may be of an earlier run, on another machine, than the races above
them. In the picture each dot is a row with products; the lines are the limits."""
PICTURE = "![GFLOP/s over operations per byte](network_roofline.svg)"
MINDSPORE = """MindSpore reads no ONNX files: these are networks of `examples.networks`, there built from its own layers. Each
side draws its weights, so that results are not compared; in inference ours are constants. MindSpore runs in graph mode on
its CPU target, with its graph kernels and without; the better counts."""
LEAST_SHARE = 0.02

Race = Mapping[str, Any]


class Kind(NamedTuple):
    """Networks of one kind whose races are committed; those with a ``text`` were measured step by step, too."""

    file: str
    title: str
    numbers: str = "float32"
    text: str = ""


HERE = (
    Kind("whole_networks.json", "Transformers", text=TRANSFORMERS),
    Kind("image_networks.json", "Networks of images", text=IMAGES),
    Kind("sound_networks.json", "Networks along one axis", text=SOUNDS),
    Kind("quantized_networks.json", "Quantized networks", "int8", QUANTIZED),
)
ELSEWHERE = (
    Kind("whole_networks_xeon.json", "Transformers on a Xeon"),
    Kind("image_networks_xeon.json", "Networks of images on a Xeon"),
    Kind("quantized_networks_xeon.json", "Quantized networks on a Xeon without AMX", "int8"),
    Kind("networks_avx2.json", "Networks on an EPYC with AVX2 alone"),
)
"""On a processor of another maker, or an older one."""


def networks_in_short() -> str:
    """The committed runs in a sentence a kind: how the best other runtime compares, on one thread and on two."""
    here = (_in_short(record, kind) for kind, record in _records(HERE))
    return "".join((*here, *(_in_a_line(record, kind) for kind, record in _records(ELSEWHERE))))


def _in_short(record: Mapping[str, Any], kind: Kind) -> str:
    found = record["networks"]
    ways: list[str] = []
    torch: list[str] = []
    for threads, said in (("1", "one thread"), ("2", "two")):
        ratios, raced = _ratios(found, threads)
        ways.append(f"{min(ratios):.2f} to {max(ratios):.2f} times on {said} ({_mean(ratios):.2f} in the mean)")
        torch += [f"{_mean(raced):.2f} on {said}, in the mean of {len(raced)}"] if raced else []
    beside = f";\ntorch.compile takes {'; '.join(torch)}" if torch else ""
    return (
        f"{len(found)} {kind.title.lower()} in {kind.numbers} at their usual sizes ({record['date']}): "
        "the better of onnxruntime and OpenVINO takes\n"
        f"{', '.join(ways)}{beside}. [Each of them](docs/network_races.md).\n"
    )


def _in_a_line(record: Mapping[str, Any], kind: Kind) -> str:
    """The means on another machine, and the least."""
    (one, torch_one), (two, torch_two) = (_ratios(record["networks"], threads) for threads in ("1", "2"))
    beside = f"; torch.compile {_mean(torch_one):.2f} and {_mean(torch_two):.2f}" if torch_one else ""
    return (
        f"{kind.title} ({record['date']}): {_mean(one):.2f} times on one thread, {_mean(two):.2f} on two, "
        f"none below {min(one):.2f} and {min(two):.2f}{beside}.\n"
    )


def _ratios(found: Mapping[str, Any], threads: str) -> tuple[list[float], list[float]]:
    """How many times ours the best runtime of ONNX takes, and torch.compile where it was raced."""
    times = [_times_of(each["races"][threads], threads) for each in found.values()]
    best = [min(onnx, openvino) / ours for ours, onnx, openvino, _ in times]
    return best, [torch / ours for ours, _, _, torch in times if torch == torch]


def network_races() -> Mapping[str, str]:
    """The page and its picture of the committed runs, if there are any."""
    records = list(_records(HERE))
    if not records:
        return {}
    parts = [part for kind, record in records for part in _all_of(record, kind)]
    found = {name: each for _, record in records for name, each in _measured(record).items()}
    parts += [part for kind, record in _records(ELSEWHERE) for part in _races(record, kind)]
    parts += _mindspore()
    text = page("Networks beside other runtimes", INTRODUCTION, HONEST, STARTS, STEPS, PICTURE, *parts, note=RUNS)
    return {"docs/network_races.md": text, "docs/network_roofline.svg": _picture(found)}


def _records(kinds: Sequence[Kind]) -> Iterator[tuple[Kind, Mapping[str, Any]]]:
    """The run of each kind of which one is committed."""
    for kind in kinds:
        if (record := read(kind.file)) is not None:
            yield kind, record


def _all_of(record: Mapping[str, Any], kind: Kind) -> Iterator[str]:
    """The parts of the page about networks of one kind."""
    found = _measured(record)
    yield from _races(record, kind)
    yield from ("### Starts and memory", _starts(found), "### Where the time goes")
    yield from (f"#### {name}\n\n{_steps(each)}" for name, each in found.items())


def _measured(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The networks of a record whose steps and starts are known too: others were raced alone."""
    return {name: each for name, each in record["networks"].items() if "steps" in each}


def _races(record: Mapping[str, Any], kind: Kind) -> Iterator[str]:
    """The races of one kind on one machine."""
    found, machine = record["networks"], record["machine"]
    yield from (f"## {kind.title}", kind.text) if kind.text else (f"## {kind.title}",)
    yield f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {record['date']}."
    yield from ("### One thread", _times(found, "1"), "### Two threads", _times(found, "2"))


def _mindspore() -> Iterator[str]:
    """The part of the page about networks beside MindSpore's, if they were raced."""
    if (record := read("mindspore_races.json")) is None:
        return
    head = ("network", "threads", "ours, ms", "MindSpore", "with graph kernels", "best / ours", "load")
    yield from ("## Networks of MindSpore", f"{MINDSPORE} {record['date']}.", table(head, _beside_mindspore(record)))


def _beside_mindspore(record: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, each in record["networks"].items():
        for threads, race in each["races"].items():
            times = dict(_of(race, "median" if threads == "1" else "least"))
            theirs = [times.get(key, float("inf")) for key in ("MindSpore", "MindSpore, graph kernels")]
            numbers = (times[OURS], *theirs, min(theirs) / times[OURS])
            yield f"`{name}`", threads, *map(_number, numbers), f"{each['load']:.1f}"


def _times(found: Mapping[str, Any], threads: str) -> str:
    """A row for each network: milliseconds, and how many times ours the best runtime of ONNX and torch take."""
    head = ("network", "ours, ms", "onnxruntime", "OpenVINO", "best of both / ours", "torch.compile", "/ ours", "load")
    rows: list[tuple[str, ...]] = []
    ratios: list[tuple[float, float]] = []
    for name, each in found.items():
        ours, onnx, openvino, torch = _times_of(each["races"][threads], threads)
        ratios.append((min(onnx, openvino) / ours, torch / ours))
        load = f"{each['load'][0]:.1f}"
        numbers = (ours, onnx, openvino, ratios[-1][0], torch, ratios[-1][1])
        rows.append((f"`{name}`", *map(_number, numbers), load))
    best, torch = (_mean([ratio[k] for ratio in ratios]) for k in range(2))
    rows.append(("geometric mean", "", "", "", _number(best), "", _number(torch), ""))
    return table(head, rows)


def _times_of(race: Race, threads: str) -> tuple[float, float, float, float]:
    """Milliseconds of ours, onnxruntime in its better mode, OpenVINO, torch.compile; inf or nan of one that was not there."""
    times = dict(_of(race, "median" if threads == "1" else "least"))
    onnx = min(time for key, time in times.items() if key.startswith("onnxruntime"))
    return times[OURS], onnx, times.get("openvino", float("inf")), times.get(TORCH, float("nan"))


def _of(race: Race, kind: str) -> Iterator[tuple[str, float]]:
    return ((name, each[kind]) for name, each in race.items() if not isinstance(each, str))


def _mean(ratios: Sequence[float]) -> float:
    known = [ratio for ratio in ratios if ratio == ratio]
    return exp(sum(map(log, known)) / len(known)) if known else float("nan")


def _number(value: float) -> str:
    return "" if value != value or value == float("inf") else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _starts(found: Mapping[str, Any]) -> str:
    """A row for each network: cold and warm starts and memory of each contestant."""
    names = (OURS, "onnxruntime", "openvino", TORCH)
    head = ("network", *(f"{name}: {what}" for name in names for what in ("cold, warm", "memory")))
    return table(head, [(f"`{name}`", *_started(each["starts"], names)) for name, each in found.items()])


def _started(starts: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    for name in names:
        each = starts.get(name, {})
        if "warm" not in each:
            yield from ("", "")
            continue
        yield f"{each['cold']['processor']:.0f}, {each['warm']['processor']:.0f}"
        yield f"{each['warm']['peak']:.0f}"


def _steps(each: Mapping[str, Any]) -> str:
    """The rows of a network that take a share worth telling, and one for the rest."""
    head = ("steps", "by", "how many", "ms", "of all", "GFLOP/s", "of peak", "GB/s", "of a read")
    total = sum(row["milliseconds"] for row in each["steps"])
    told = [row for row in each["steps"] if row["milliseconds"] >= LEAST_SHARE * total]
    rows = [_step(row, total, each["limits"]) for row in told]
    rest = [row for row in each["steps"] if row not in told]
    left = sum(row["milliseconds"] for row in rest)
    count = str(sum(row["count"] for row in rest))
    rows.append(("all others", "", count, f"{left:.2f}", f"{left / total:.0%}", "", "", "", ""))
    return table(head, rows)


def _step(row: Mapping[str, Any], total: float, limits: Mapping[str, float]) -> tuple[str, ...]:
    took = row["milliseconds"]
    compute, bandwidth = row["gigaflop"] / took * 1e3, row["gigabytes"] / took * 1e3
    rates = (compute, limits["compute"]), (bandwidth, limits["bandwidth"])
    cells = [cell for rate, limit in rates for cell in ((f"{rate:.0f}", f"{rate / limit:.0%}") if rate else ("", ""))]
    return row["operators"], row["runner"], str(row["count"]), f"{took:.2f}", f"{took / total:.0%}", *cells


def _picture(found: Mapping[str, Any]) -> str:
    points = [
        Point(name, row["gigaflop"] / row["gigabytes"], row["gigaflop"] / row["milliseconds"] * 1e3)
        for name, each in found.items()
        for row in each["steps"]
        if row["gigaflop"]
    ]
    limits = [each["limits"] for each in found.values()]
    return roofline(points, max(each["compute"] for each in limits), max(each["bandwidth"] for each in limits))
