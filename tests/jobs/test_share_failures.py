"""A worker that is cut off, frozen, or told to stop: what it does not hold it does not write to."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Self

import psutil
import pytest
import warm_processes
from archive_reading import check_sealed, rows
from crawl_processes import end, started_by
from loopback import PROJECT, QUICK, RawServer, environment, page

from amicrawl.disk import Disk
from amicrawl.fleet.checkpoints.data_directory import opened_store
from amicrawl.fleet.database.connection import RedisSettings, connect
from amicrawl.fleet.leases.leased import raise_fence
from amicrawl.fleet.sharing.share import Ended, Share, TakenPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis_server import RedisServer

PAGES = 600
IN_FLIGHT = 4
LEASE = 3.0
PATIENCE = 120.0


class Wire:
    """A way to a server on loopback that can be cut: open connections are closed, new ones refused."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.is_cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        with self._lock:
            self.is_cut = True
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.is_cut = False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                if self.is_cut:
                    here.close()
                    continue
                there = socket.create_connection(("127.0.0.1", self._target))
                with self._lock:
                    self._open |= {here, there}
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(65536):
                target.sendall(block)
        with self._lock:
            for each in (source, target):
                self._open.discard(each)
                each.close()


def is_still(directory: Path) -> bool:
    """Tell whether nothing is written into *directory*, for half a second."""
    before = state_of(directory)
    time.sleep(0.5)
    return state_of(directory) == before


def respond(head: bytes) -> bytes:
    number = int(head.split(b" ")[1][1:] or 0)
    children = [child for child in (2 * number + 1, 2 * number + 2) if child < PAGES]
    return page(
        "".join(f'<a href="/{child}">x</a>' for child in children).encode(), "Content-Type: text/html"
    )


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "amicrawl", "share", *arguments]


@contextlib.contextmanager
def worker(data: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker; it and its crawl are gone behind the block, however it is left."""
    settings = QUICK | {"AMICRAWL_PER_HOST": str(IN_FLIGHT), "AMICRAWL_INFLIGHT_MAX": str(IN_FLIGHT)}
    further = [part for pair in settings.items() for part in ("-s", "=".join(pair))]
    process = warm_processes.Popen(
        command("work", "one", "--data", str(data), "--lease", str(LEASE), *further),
        cwd=PROJECT,
        env=environment() | {"REDIS_URL": f"redis://127.0.0.1:{port}/0"},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        end(process)


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def state_of(directory: Path) -> dict[str, str]:
    """Return a digest of every file that a crawl writes, but for what its process says."""
    left_out = {"worker.log", "fence.json"}
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in left_out
    }


@pytest.mark.timeout(300)
def test_a_worker_cut_off_pauses_and_a_frozen_one_writes_nothing_when_it_wakes(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    data = tmp_path / "data"
    directory = data / "one" / "part-000"
    flows = threading.Event()
    flows.set()

    def held(head: bytes) -> bytes:
        flows.wait(PATIENCE)
        return respond(head)

    with (
        RawServer(held, keep_open=True, pause=0.045) as server,
        Wire(redis_server.port) as wire,
        contextlib.ExitStack() as started,
    ):
        (tmp_path / "starts.txt").write_text(f"{server.url}/\n")
        made = warm_processes.run(
            command("create", "one", "--seeds", str(tmp_path / "starts.txt"), "--partitions", "1"),
            cwd=PROJECT,
            env=environment() | {"REDIS_URL": redis_server.url},
            check=False,
            capture_output=True,
        )
        assert made.returncode == 0, made.stderr
        first = started.enter_context(worker(data, wire.port))
        until(lambda: len(server.requests) > 60)

        wire.cut()
        # It goes on as long as its lease is good, and not beyond. A while without a request is no sign
        # of that by itself: the disk can take as long.
        until(lambda: "nothing is fetched or written" in (directory / "worker.log").read_text())
        until(lambda: is_quiet(server))
        paused = len(server.requests)
        assert paused < PAGES, "the crawl was over before its lease was: this says nothing"
        before = state_of(directory)
        time.sleep(0.5)
        assert (len(server.requests), state_of(directory)) == (paused, before)
        wire.mend()
        until(lambda: len(server.requests) > paused + 20)

        # It is not frozen between its look at the fence and a write: what is in flight is held back.
        flows.clear()
        until(lambda: is_still(directory))
        crawl = started_by(first.pid)[0]
        for process in (psutil.Process(first.pid), crawl):
            process.suspend()
        with connect_to(redis_server) as share:
            taken = taken_over(share, data)
            assert raise_fence(directory, "one.p0", taken.token, disk=Disk())
            frozen = state_of(directory)
            requested = len(server.requests)
            # The worker around it would kill it: by itself, too, it has to find out.
            crawl.resume()
            flows.set()
            until(lambda: crawl.status() == psutil.STATUS_ZOMBIE)
            assert state_of(directory) == frozen
            psutil.Process(first.pid).resume()
            # What the crawl said passes through the worker, which was frozen until now.
            until(lambda: "Nothing more was written" in (directory / "worker.log").read_text())
            assert len(server.requests) - requested <= 2 * IN_FLIGHT
            assert share.release(0, taken.token, Ended.BUSY) == "ready"
        # It takes the partition like any other that is ready, and finishes it.
        assert first.wait(PATIENCE) == 0
    found = Counter(row["url"] for row in rows(directory))
    assert set(found) == {f"{server.url}/{number or ''}" for number in range(PAGES)}
    assert found.total() - len(found) <= 2 * IN_FLIGHT
    with connect_to(redis_server) as share:
        facts = json.loads(share.standings()[0]["facts"])
    assert facts["rows"] == found.total(), "what all attempts have done, not the last alone"
    for path in directory.glob("*.warc.gz"):
        check_sealed(path)


def is_quiet(server: RawServer) -> bool:
    requested = len(server.requests)
    time.sleep(1.0)
    return len(server.requests) == requested


@contextlib.contextmanager
def connect_to(redis_server: RedisServer):  # type: ignore[no-untyped-def]
    store = connect(RedisSettings(url=redis_server.url))
    yield Share.open(store, "one")
    store.close()


def taken_over(share: Share, data: Path) -> TakenPartition:
    here = opened_store(data, disk=Disk())
    deadline = time.monotonic() + PATIENCE
    while True:
        found = share.take("the test", ttl=timedelta(minutes=5), data=here)
        if isinstance(found, TakenPartition):
            assert found.lapsed
            return found
        assert time.monotonic() < deadline
        time.sleep(0.1)
