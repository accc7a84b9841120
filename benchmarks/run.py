"""All cases in one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from benchmarks.case import Case, named
from benchmarks.cases import CASES
from benchmarks.cold import cold_times
from benchmarks.contestants import limit, ours, peers
from benchmarks.convolutions import CHAINS
from benchmarks.convolutions import run as run_convolutions
from benchmarks.machine import describe
from benchmarks.measure import BATCH_SECONDS, Spread, interleaved
from benchmarks.products import PRODUCTS
from benchmarks.products import run as run_products
from benchmarks.record import Record, case_record, table
from benchmarks.stored_products import STORED_PRODUCTS
from benchmarks.stored_products import run as run_stored_products

GREATEST_ERROR = 1e-4


def run(names: Sequence[str], *, tiny: bool, with_peers: bool, rounds: int, cold: int) -> Record:
    """Measures the named cases (all when none is named), prints a table, returns the record."""
    products = tuple(product for product in PRODUCTS if product.name in names or not names)
    stored = tuple(product for product in STORED_PRODUCTS if product.name in names or not names)
    chains = tuple(chain for chain in CHAINS if chain.name in names or not names)
    others = [name for name in names if name not in {each.name for each in (*products, *stored, *chains)}]
    cases = named(CASES, others) if others or not names else ()
    records = {case.name: run_case(case, tiny=tiny, with_peers=with_peers, rounds=rounds) for case in cases}
    print(table(records))
    for case in cases if cold and not tiny else ():
        records[case.name]["cold"] = times = _cold_record(case, ("ours", "torch") if with_peers else ("ours",), cold)
        print(f"{case.name:18s} compile ms, empty cache:", *(f"{who} {_first(times[who])}" for who in times))
    record: Record = {"machine": describe(), "rounds": rounds, "tiny": tiny, "cases": records}
    if products:
        record["products"] = run_products(products, rounds=rounds, tiny=tiny)
    if stored:
        record["stored_products"] = run_stored_products(stored, rounds=rounds, tiny=tiny)
    if chains:
        record["convolutions"] = run_convolutions(chains, rounds=rounds, tiny=tiny)
    return record


def run_case(case: Case, *, tiny: bool, with_peers: bool, rounds: int) -> Record:
    """One case: build all contestants, check their answers, measure. A wrong answer raises ArithmeticError."""
    problem = case.at(tiny)
    contestants = [*ours(problem), *(peers(problem) if with_peers else ()), *limit(problem)]
    for contestant in contestants:
        contestant.run()
        if contestant.answer is not None and not problem.error(contestant.answer()) <= GREATEST_ERROR:
            raise ArithmeticError(f"{case.name}: {contestant.name} is off by {problem.error(contestant.answer()):.1e}")
    times = interleaved(contestants, rounds, 0.0 if tiny else BATCH_SECONDS)
    return case_record(problem, contestants, times)


def _cold_record(case: Case, contenders: Iterable[str], processes: int) -> Record:
    measured = {who: cold_times(case.name, who, processes) for who in contenders}
    return {
        who: {state: {key: asdict(spread) for key, spread in times.items()} for state, times in states.items()}
        for who, states in measured.items()
    }


def _first(states: Record) -> str:
    return str(Spread(**states["empty"]["compile"]))
