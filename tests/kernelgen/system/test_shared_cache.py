"""What one machine compiled the others load, if it is signed; nothing that happens to the place where it lies is an error."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kernelgen.system import object_cache, shared_cache
from kernelgen.system.notices import warn_once
from kernelgen.system.object_cache import cache_key, cached, leading, read_entry, write_entry

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'graphkernel[farm]'")

SECRET = b"only those who share it know"
KEY = cache_key("a kernel")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/shared"


@pytest.fixture
def shared(url: str) -> shared_cache.SharedCache:
    warn_once.cache_clear()
    return shared_cache.SharedCache(url, SECRET)


def files(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "shared").rglob("*") if path.is_file())


def never() -> bytes:
    raise AssertionError("it was there")


def test_what_one_machine_made_another_loads_and_keeps(shared: shared_cache.SharedCache, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert cached(here, "cpu", KEY, lambda: b"code", bytes, shared) == (b"code", False)
    assert cached(there, "cpu", KEY, never, bytes, shared) == (b"code", True)
    assert read_entry(there, "cpu", KEY) == b"code", "without asking again"


@pytest.mark.parametrize(
    "fault", ["unsigned", "altered", "another key", "another entry", "another room", "cut", "empty"]
)
def test_what_is_not_signed_for_its_place_is_refused_and_made_anew(
    fault: str, shared: shared_cache.SharedCache, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if fault == "another key":
        shared_cache.SharedCache(url, b"somebody else's secret").write("cpu", KEY, b"evil")
    elif fault == "another entry":
        other = cache_key("another kernel")
        shared.write("cpu", other, b"evil")
        (place,) = files(tmp_path)
        place.parent.rename(place.parents[1] / KEY[:2])
        (place.parents[1] / KEY[:2] / place.name).rename(place.parents[1] / KEY[:2] / f"{KEY}.o")
    elif fault == "another room":
        shared.write("graphs", KEY, b"evil")
        (tmp_path / "shared" / "graphs").rename(tmp_path / "shared" / "cpu")
    else:
        shared.write("cpu", KEY, b"code")
        (place,) = files(tmp_path)
        content = place.read_bytes()
        place.write_bytes(
            {"unsigned": b"evil", "altered": content[:-1] + b"E", "cut": content[:-2], "empty": b""}[fault]
        )
    with caplog.at_level(logging.WARNING):
        assert cached(tmp_path / "here", "cpu", KEY, lambda: b"made", bytes, shared) == (b"made", False)
    assert "unsigned, altered, or signed with another key" in caplog.text
    assert cached(tmp_path / "there", "cpu", KEY, never, bytes, shared) == (b"made", True), "what was wrong is replaced"


def test_with_a_wrong_key_there_is_one_warning_and_not_one_for_each_kernel(
    shared: shared_cache.SharedCache, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    others = shared_cache.SharedCache(url, b"the key of other machines")
    for number in range(5):
        others.write("cpu", cache_key(f"kernel {number}"), b"code")
    with caplog.at_level(logging.INFO):
        assert [shared.read("cpu", cache_key(f"kernel {number}")) for number in range(5)] == [None] * 5
    levels = [record.levelno for record in caplog.records if "unsigned, altered" in record.getMessage()]
    assert levels == [logging.WARNING, *[logging.INFO] * 4]


class Gone:
    """A file system that fails, or never answers."""

    protocol = "gone"

    def __init__(self, hangs: bool) -> None:
        self.hangs, self.asked = hangs, 0
        self.over = threading.Event()

    def __getattr__(self, name: str) -> object:
        def fail(*arguments: object, **more: object) -> None:
            self.asked += 1
            if self.hangs:
                self.over.wait(60)
            raise ConnectionError("no route to host")

        return fail


@pytest.mark.parametrize("hangs", [False, True])
def test_a_place_out_of_reach_is_told_once_and_left_alone(
    hangs: bool, shared: shared_cache.SharedCache, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch
) -> None:
    gone = Gone(hangs)
    monkeypatch.setattr(shared_cache, "REMOTE_SECONDS", 0.3)
    shared._found = (gone, "/gone")
    with caplog.at_level(logging.WARNING):
        for number in range(20):
            key = cache_key(str(number))
            with leading(tmp_path / "here", "cpu", key, shared):
                assert cached(tmp_path / "here", "cpu", key, lambda: b"made", bytes, shared) == (b"made", False)
    assert caplog.text.count("left alone for now") == 1
    assert gone.asked == 1
    gone.over.set()


def test_of_many_one_makes_an_entry_and_the_others_find_it(url: str, tmp_path: Path) -> None:
    made: list[int] = []

    def rank(number: int) -> None:
        mine, folder = shared_cache.SharedCache(url, SECRET), tmp_path / f"machine {number % 3}"
        with leading(folder, "graphs", KEY, mine):
            if read_entry(folder, "graphs", KEY, mine) is None:
                made.append(number)
                time.sleep(0.1)
                write_entry(folder, "graphs", KEY, b"code", shared=mine)

    ranks = [threading.Thread(target=rank, args=(number,)) for number in range(6)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    assert len(made) == 1
    assert not [path for path in files(tmp_path) if path.suffix != ".o"], "no lease is left"


def test_a_leader_that_is_gone_is_replaced(shared: shared_cache.SharedCache, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(shared_cache, "LEASE_SECONDS", 0.5)
    dead = shared.leading("graphs", KEY)
    dead.__enter__()  # and never a word again
    with leading(tmp_path / "here", "graphs", KEY, shared):
        pass
    assert files(tmp_path) == []


LEADER = """
import sys, time
from pathlib import Path
from kernelgen.system.object_cache import leading
with leading(Path(sys.argv[1]), "graphs", sys.argv[2]):
    print("leading", flush=True)
    time.sleep(600)
"""


def test_a_leader_of_this_machine_that_is_killed_is_replaced_at_once(tmp_path: Path) -> None:
    leader = subprocess.Popen([sys.executable, "-c", LEADER, str(tmp_path), KEY], stdout=subprocess.PIPE, text=True)
    assert leader.stdout is not None
    assert leader.stdout.readline() == "leading\n"
    threading.Timer(0.5, os.kill, (leader.pid, signal.SIGKILL)).start()
    with leading(tmp_path, "graphs", KEY):
        assert leader.wait(60) == -signal.SIGKILL
    leader.stdout.close()


def test_nobody_waits_for_a_leader_for_ever(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(object_cache, "WAIT_SECONDS", 0.2)
    with leading(tmp_path, "graphs", KEY), leading(tmp_path, "graphs", KEY):
        pass


RANK = """
import numpy as np, graphkernel as gk
from graphkernel import ops
exe = gk.compile(gk.trace(lambda x: ops.exp(x) * 2.0 + 1.0, gk.spec((32, 40), "float32")))
print(float(exe(np.ones((32, 40), np.float32))[0].sum()))
import sys
print("islpy" in sys.modules)
"""


def ranks_environment(tmp_path: Path, rank: int, **more: str) -> dict[str, str]:
    named = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": str(rank)}
    cache = {"GRAPHKERNEL_CACHE_DIR": str(tmp_path / f"machine {rank}")}
    return {**os.environ, **named, **cache, "GRAPHKERNEL_SHARED_CACHE": f"file://{tmp_path}/shared", **more}


def ran(tmp_path: Path, rank: int, **more: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", RANK], env=ranks_environment(tmp_path, rank, **more),
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return done.stdout, done.stderr


@pytest.fixture
def signed() -> dict[str, str]:
    return {"GRAPHKERNEL_SHARED_CACHE_KEY": SECRET.decode()}


def test_ranks_on_machines_without_a_cache_load_what_the_first_compiled(tmp_path: Path, signed) -> None:
    expected = float((np.exp(np.ones((32, 40), np.float32)) * 2 + 1).sum())
    first, second = ran(tmp_path, 0, **signed), ran(tmp_path, 1, **signed)
    assert [float(out.split()[0]) == pytest.approx(expected) for out, _ in (first, second)] == [True, True]
    assert (first[0].split()[-1], second[0].split()[-1]) == ("True", "False"), "the second loaded no compiler"


def test_without_a_secret_nothing_is_shared(tmp_path: Path) -> None:
    out, told = ran(tmp_path, 0, GRAPHKERNEL_SHARED_CACHE_KEY="short")
    assert out
    assert "GRAPHKERNEL_SHARED_CACHE_KEY needs 16 characters" in told
    assert not (tmp_path / "shared").exists()


def test_a_store_that_cannot_be_reached_or_known_changes_nothing_but_a_warning(tmp_path: Path, signed) -> None:
    for place in ("nonsense://somewhere/x", "http://127.0.0.1:9/x"):
        out, told = ran(tmp_path, 3, **{**signed, "GRAPHKERNEL_SHARED_CACHE": place})
        assert out
        assert "left alone for now" in told
        (tmp_path / "machine 3").rename(tmp_path / f"used {len(place)}")
