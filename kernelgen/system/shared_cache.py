"""The cache of many machines, behind a URL that fsspec knows: what one machine compiled, the others load.

What comes from there is code, and is run. So an entry is signed with a key that only those who share it have, and one
without a signature, or altered, or signed for another place, is told of and not used. The URL may be out of reach at any
time: then it is left alone for a while, which is told once, and everything goes on without it.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from kernelgen.system.escape import line
from kernelgen.system.limits import LIMITS
from kernelgen.system.notices import warn_once

T = TypeVar("T")

REMOTE_SECONDS = 20.0
"""For one exchange; then the URL counts as out of reach."""
APART_SECONDS = 60.0
"""How long it is left alone then."""
LEASE_SECONDS = 60.0
"""A leader that has not finished after this is taken for dead."""
LOOK_SECONDS, MOST_LOOK_SECONDS = 0.2, 2.0
"""Between two looks of who waits; the pauses grow, since a thousand may wait."""

_SIGNATURE_BYTES = 32
_FORMAT = b"graphkernel entry 1"


class SharedCache:
    """Entries at a ``url``, signed with a ``secret``."""

    def __init__(self, url: str, secret: bytes) -> None:
        self.url, self._secret = url.rstrip("/"), secret
        self._silent_until = 0.0
        self._refused = False
        self._found: Any = None

    def read(self, room: str, key: str) -> bytes | None:
        """The content under a key in a room; None where there is none that may be used."""
        stored = self._asked(lambda: self._files.cat_file(self._place(room, key), 0, LIMITS.object_bytes + 1))
        if stored is None:
            return None
        signature, content = stored[:_SIGNATURE_BYTES], stored[_SIGNATURE_BYTES:]
        if hmac.compare_digest(signature, self._sign(room, key, content)):
            return content
        self._refuse(f"not used: {self.url}/{room}/{key} is unsigned, altered, or signed with another key")
        return None

    def _refuse(self, message: str) -> None:
        """Tells of the first such entry: with a wrong key all are, and a network has hundreds. The others are for logs."""
        if self._refused:
            logging.getLogger("kernelgen").info("%s", line(message))
        else:
            self._refused = True
            warn_once(f"{message}; of more like it there is no warning")

    def write(self, room: str, key: str, content: bytes) -> None:
        """Keeps it there where this is possible."""
        self._asked(lambda: self._put(self._place(room, key), self._sign(room, key, content) + content))

    def why_out_of_reach(self) -> str:
        """Why entries cannot be looked for now; empty where they can. Asks anew, at most for :data:`REMOTE_SECONDS`."""
        try:
            within(REMOTE_SECONDS, lambda: self._files.exists(self._place("doctor", "probe")))
        except Exception as error:  # every file system has errors of its own
            return f"{type(error).__name__}: {error}"
        return ""

    @contextmanager
    def leading(self, room: str, key: str) -> Generator[None]:
        """Waits while somebody else makes the entry; in the block it is there, or it is ours to make.

        Who makes it holds a lease. One that stays the same for longer than :data:`LEASE_SECONDS`, by the clock of whoever
        waits, is of somebody who is gone, and is taken over.
        """
        place = self._asked(lambda: self._place(room, key))
        if place is None:
            yield
            return
        is_leader = self._wait(place, f"{place}.lease", secrets.token_hex(16).encode())
        try:
            yield
        finally:
            if is_leader:
                self._asked(lambda: self._files.rm_file(f"{place}.lease"))

    def _wait(self, place: str, lease: str, own: bytes) -> bool:
        """Whether the lease became ours."""
        seen, since, pause = b"", time.monotonic(), LOOK_SECONDS
        while not self._asked(lambda: self._create(lease, own)):
            if self._asked(lambda: self._files.exists(place)) or time.monotonic() < self._silent_until:
                return False
            found = self._asked(lambda: self._files.cat_file(lease)) or b""
            if found != seen:
                seen, since = found, time.monotonic()
            elif time.monotonic() > since + LEASE_SECONDS:
                warn_once(f"{lease}: whoever made this entry is gone; it is made here")
                self._asked(lambda: self._files.pipe_file(lease, own))
                return True
            time.sleep(pause)
            pause = min(1.5 * pause, MOST_LOOK_SECONDS)
        return True

    def _create(self, place: str, content: bytes) -> bool:
        """Whether it was not there before; where nobody can tell, it was not."""
        self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
        try:
            if self._is_disk:  # where fsspec would look first and write then, which two may do at once
                with self._files.open(place, "xb") as file:
                    file.write(content)
            else:
                self._files.pipe_file(place, content, mode="create")
        except FileExistsError:
            return False
        except (NotImplementedError, TypeError, ValueError):  # a store without it: everybody makes the entry
            return True
        return True

    @property
    def _is_disk(self) -> bool:
        protocols = self._files.protocol
        return "file" in ((protocols,) if isinstance(protocols, str) else protocols)

    def _put(self, place: str, content: bytes) -> None:
        """On disks a file appears whole by renaming, in object stores by itself."""
        self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
        unfinished = f"{place}.{secrets.token_hex(8)}.part" if self._is_disk else place
        self._files.pipe_file(unfinished, content)
        if self._is_disk:
            self._files.mv(unfinished, place)

    @property
    def _files(self) -> Any:  # a file system of fsspec's
        if self._found is None:
            self._found = import_module("fsspec.core").url_to_fs(self.url)
        return self._found[0]

    def _place(self, room: str, key: str) -> str:
        _ = self._files
        return f"{self._found[1]}/{room}/{key[:2]}/{key}.o"

    def _sign(self, room: str, key: str, content: bytes) -> bytes:
        head = b"\0".join((_FORMAT, room.encode(), key.encode(), b""))
        return hmac.new(self._secret, head + content, hashlib.sha256).digest()

    def _asked(self, work: Callable[[], T]) -> T | None:
        """What the URL answers; None where there is nothing, or where it is out of reach."""
        if time.monotonic() < self._silent_until:
            return None
        try:
            return within(REMOTE_SECONDS, work)
        except FileNotFoundError:
            return None
        except Exception as error:  # every file system has errors of its own
            self._silent_until = time.monotonic() + APART_SECONDS
            warn_once(f"the shared cache {self.url} is left alone for now: {type(error).__name__}: {error}")
            return None


def within(seconds: float, work: Callable[[], T]) -> T:
    """What the work gives. Raises TimeoutError after so many ``seconds``, and what the work raises."""
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((work(), None))
        except BaseException as error:  # raised again where somebody waits for it
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()  # one that never ends does not keep the process
    try:
        found, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer in {seconds:g} s") from None
    if error is not None:
        raise error
    return found  # pyright: ignore[reportReturnType]  # the work's own
