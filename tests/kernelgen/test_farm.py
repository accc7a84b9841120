"""Every request is answered once: whatever executors lose, double, delay or refuse, and wherever a run is stopped."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import Any

import pytest
from kernel_examples import column_sum, softmax
from typer.testing import CliRunner

from kernelgen.__main__ import app
from kernelgen.composite.write import dump_desc
from kernelgen.errors import ArgumentError, BackendUnavailable
from kernelgen.farm import Crew, Journal, Policy, answers, call, crew_of, local
from kernelgen.farm.crews import _Connection
from kernelgen.farm.sandbox import TaskError, told
from kernelgen.system.answering import Limit, ProcessDied, ProcessLate

QUICK = Policy(patience=0.2, look=0.02)
REQUESTS = [(number, str(number).encode()) for number in range(20)]
RIGHT = {number: number * number for number in range(20)}


def square(request: bytes) -> bytes:
    return told(int(request) ** 2)


def fails(request: bytes) -> bytes:
    raise ArithmeticError(f"never {request.decode()}")


def in_child(request: bytes) -> bytes:
    """What a child does with a word."""
    word = request.decode()
    if word == "die":
        os._exit(3)
    if word == "hang":
        time.sleep(600)
    if word == "raise":
        raise LookupError("no such word")
    if word == "warn":
        logging.getLogger("kernelgen").warning("a word of warning")
    return json.dumps([word, os.getpid()]).encode()


class Strange(Executor):
    """Works at once, but for what ``fate`` makes of the number of a submission."""

    def __init__(self, fate: Callable[[int], str]) -> None:
        self.fate, self.count = fate, 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        (request,), task = args, fn
        fate, self.count = self.fate(self.count), self.count + 1
        future: Future[bytes] = Future()
        if fate == "broken":
            raise BrokenExecutor("nobody is left")
        if fate == "cancelled":
            future.cancel()
            future.set_running_or_notify_cancel()
        elif fate == "failed":
            future.set_exception(ConnectionError("the worker is gone"))
        elif fate == "slow":
            threading.Timer(0.6, _late, (future, task, request)).start()
        elif fate != "lost":
            future.set_result(task(request))
        return future


def _late(future: Future[bytes], task: Callable[[bytes], bytes], request: bytes) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(task(request))


def crew(fate: Callable[[int], str], width: Callable[[], int] = lambda: 4) -> Crew:
    return Crew("strange", Strange(fate), width)


FATES: dict[str, Callable[[int], str]] = {
    "all is well": lambda k: "",
    "every third is lost": lambda k: "lost" if k % 3 == 0 else "",
    "all are lost": lambda k: "lost",
    "all are slow, so that copies answer too": lambda k: "slow",
    "some are cancelled": lambda k: "cancelled" if k % 4 == 1 else "",
    "half fail": lambda k: "failed" if k % 2 else "",
    "broken from the start": lambda k: "broken",
    "broken on the way": lambda k: "broken" if k > 7 else "",
    "everything at once": lambda k: ("lost", "slow", "", "cancelled", "failed", "broken")[k % 6],
}


@pytest.mark.parametrize("fate", FATES)
def test_every_request_is_answered_once(fate: str, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path) as journal:
        found = list(answers(square, REQUESTS, crew(FATES[fate]), journal, QUICK))
    assert len(found) == len(REQUESTS), "none twice"
    assert dict(found) == RIGHT
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == len(REQUESTS)


def test_while_nobody_is_there_this_machine_works() -> None:
    widths = iter([0] * 5 + [2] * 1000)
    assert dict(answers(square, REQUESTS, crew(lambda k: "", lambda: next(widths)), None, QUICK)) == RIGHT


def test_what_was_handed_out_again_is_told(caplog: pytest.LogCaptureFixture) -> None:
    list(answers(square, REQUESTS, crew(FATES["half fail"]), None, QUICK))
    assert "handed out again" in caplog.text
    assert "ConnectionError: the worker is gone" in caplog.text


def test_a_function_that_fails_everywhere_says_so() -> None:
    with pytest.raises(ArithmeticError, match="never 0"):
        list(answers(fails, REQUESTS[:1], crew(lambda k: ""), None, QUICK))


@pytest.mark.parametrize("torn", ["", '{"key": "abc', "half of a line"])
def test_a_run_that_was_stopped_goes_on(tmp_path: Path, torn: str) -> None:
    path, asked = tmp_path / "journal", list[int]()

    def counted(request: bytes) -> bytes:
        asked.append(int(request))
        return square(request)

    with Journal(path) as journal:
        run = answers(counted, REQUESTS, crew(lambda k: ""), journal, QUICK)
        before = dict(next(run) for _ in range(7))
        run.close()
    with path.open("a") as file:
        file.write(torn)
    known = set(asked)
    asked.clear()
    with Journal(path) as journal:
        after = dict(answers(counted, REQUESTS, crew(lambda k: ""), journal, QUICK))
    assert after == RIGHT
    assert before.items() <= after.items()
    assert set(asked).isdisjoint(set(before))
    assert set(asked) | known == set(RIGHT)


def test_requests_are_drawn_when_somebody_has_time_for_them() -> None:
    drawn = iter(range(1000))
    run = answers(square, ((k, str(k).encode()) for k in drawn), crew(lambda k: ""), None, QUICK)
    next(run)
    assert next(drawn) <= 8
    run.close()


def test_one_run_at_a_time_writes_a_journal(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal"), pytest.raises(ArgumentError, match="another run"):
        Journal(tmp_path / "journal").__enter__()


def test_a_file_of_something_else_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text('{"key": "a", "answer": 1}\nhello\n')
    with pytest.raises(ArgumentError, match="notes, line 2"):
        Journal(path).__enter__()
    assert path.read_text().endswith("hello\n"), "nothing was changed"


def test_any_executor_will_do() -> None:
    with ThreadPoolExecutor(2) as threads:
        assert dict(answers(square, REQUESTS, Crew("threads", threads, lambda: 2))) == RIGHT


def test_an_executor_of_the_users_is_named_by_what_makes_it() -> None:
    with crew_of("concurrent.futures:ThreadPoolExecutor", 2) as threads:
        assert dict(answers(square, REQUESTS, threads)) == RIGHT


@pytest.mark.parametrize("text", ["processes:0", "processes:x", "ssh://there", "json.decoder:JSONDecoder", "no.such:f"])
def test_an_executor_that_is_none_is_a_mistake(text: str) -> None:
    with pytest.raises(ArgumentError, match="--executor"), crew_of(text):
        pass


def test_a_cluster_that_does_not_answer_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelgen.farm.crews.CONNECT_SECONDS", 0.3)
    with pytest.raises(BackendUnavailable, match="dask"), crew_of("dask://127.0.0.1:9"):
        pass


def test_children_die_hang_raise_and_warn_alone() -> None:
    name, limit = f"{__name__}:in_child", Limit(20.0)
    with local(2) as here:
        assert json.loads(call(name, b"fine", limit))["answer"][0] == "fine"
        with pytest.raises(ProcessDied, match="code 3"):
            call(name, b"die", limit)
        with pytest.raises(ProcessLate):
            call(name, b"hang", Limit(0.2))
        with pytest.raises(TaskError, match="LookupError: no such word"):
            call(name, b"raise", limit)
        assert json.loads(call(name, b"warn", limit))["notices"] == ["a word of warning"]
        futures = [here.executor.submit(_called, word) for word in (b"fine", b"fine", b"fine")]
        wait_for(futures)
        assert {json.loads(future.result())["answer"][0] for future in futures} == {"fine"}


def _called(word: bytes) -> bytes:
    return call(f"{__name__}:in_child", word, Limit(20.0))


def test_kernels_are_compiled_over_a_crew(tmp_path: Path) -> None:
    for desc in (softmax(4, 33), column_sum()):
        (tmp_path / f"{desc.name}.info").write_text(json.dumps(dump_desc(desc)))
    (tmp_path / "z.info").write_text("3")
    out = tmp_path / "rows.json"
    found = CliRunner().invoke(app, ["compile", str(tmp_path), "--executor", "processes:1", "--json", str(out)])
    assert found.exit_code == 1
    rows = {row["name"]: row for row in json.loads(out.read_text())["records"]}
    assert sorted(row["status"] for row in rows.values()) == ["compiled", "compiled", "refused"]
    assert rows["z.info"]["message"].startswith("$")


class Client:
    """Of a scheduler that is there, or not."""

    def __init__(self, status: str) -> None:
        self.status, self.scheduler = status, self

    def ncores(self) -> dict[str, int]:
        return {"tcp://worker": 3}

    def sync(self, function: Callable[[], Any], **_: object) -> Any:
        return function()

    def close(self, timeout: float) -> None:
        self.status = "closed"


def test_nobody_waits_while_a_scheduler_is_looked_for() -> None:
    """What this machine has done meanwhile would wait too."""
    is_back, tries = threading.Event(), list[Client]()

    def connect() -> Client:
        tries.append(Client("running"))
        assert is_back.wait(60)
        return tries[-1]

    connection = _Connection("tcp://gone", connect, Client("closed"))
    for _ in range(3):
        assert connection.width() == 0
    assert not is_back.is_set()
    assert connection.attempt is not None
    is_back.set()
    wait_for([connection.attempt], timeout=60)
    assert connection.width() == 0, "taken now"
    assert connection.width() == 6
    assert len(tries) == 1
    connection.close()
    assert tries[0].status == "closed"


def test_a_scheduler_that_comes_back_too_late_is_left_alone() -> None:
    is_back, made = threading.Event(), Client("running")

    def connect() -> Client:
        assert is_back.wait(60)
        return made

    connection = _Connection("tcp://gone", connect, Client("closed"))
    assert connection.width() == 0
    connection.close()
    is_back.set()
    assert connection.attempt is not None
    wait_for([connection.attempt], timeout=60)
    while made.status != "closed":  # its callback follows the result
        time.sleep(0.001)
