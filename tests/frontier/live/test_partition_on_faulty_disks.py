"""A live partition on disks that fail, fill up, are read-only, or lose their power; at any call.

One session does everything that a crawl does with a frontier. Every frame that it ever makes is kept, so
that what is found afterwards can be compared: it must be what the frames up to some point say, and that
point must not lie before the last one that was acknowledged.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from faulty_disks import KilledError
from frontier.live.crawls import (
    HOUR,
    META,
    Clock,
    DividedPartition,
    TracedPartition,
    contents_by,
    contents_of,
    frontier_on,
    offer_of,
    opened,
)
from frontier.live.disks import CountingDisk, FailingDisk, MortalDisk, PowerDisk, ReadOnlyDisk
from meguri.store.partitions import names_in

from amicrawl.capture import Failure
from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.frontier import Found, Outcome
from amicrawl.meguri import LivePartition
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import verify

if TYPE_CHECKING:
    from amicrawl.frontier import DurableFrontier
    from amicrawl.urls import UrlKey

OUTCOMES = [
    Outcome(200, found=Found("ab" * 20, '"one"', "Mon", 1_700_000_000_123)),
    Outcome(301, redirect="http://elsewhere.test/"),
    Outcome(404),
    Outcome(503),
    Outcome(failure=Failure.RESPONSE_TIMEOUT),
    Outcome(failure=Failure.ROBOTS_DENIED),
]
AGAIN = Outcome(200, found=Found("cd" * 20, '"two"', "Tue", 1_700_000_999_123))
PARTS = 20
NEVER = 10**9


class Session:
    """A crawl that is begun, killed, resumed, closed and begun again, and what it was promised."""

    def __init__(
        self, directory: Path, disk: CountingDisk, kind: type[TracedPartition] = TracedPartition
    ) -> None:
        self.directory = directory
        self._kind = kind
        self.trace: list[bytes] = []
        self.flushed = self.synced = 0
        """Frames that must outlive a kill, and a power cut."""
        self.offered: list[UrlKey] = []
        self.kept: list[UrlKey] = []
        """Keys that were offered, and that were kept."""
        self._disk = disk
        self._clock = Clock()
        self._paths = iter(range(1000))
        self.frontier: DurableFrontier | None = None

    def run(self) -> None:
        frontier = self._open()
        self._offer(frontier, 9)
        self._flush(frontier)
        self._settle(frontier, OUTCOMES)
        self._sync(frontier)
        self._snapshot(frontier)
        self._flush(frontier)
        self._offer(frontier, 2)
        self._kill(frontier)

        self._clock.hour += 24 * 400
        frontier = self._open(recrawls=True)
        self._settle(frontier, [AGAIN, Outcome(304), AGAIN])
        self._flush(frontier)
        self._snapshot(frontier)
        self._settle(frontier, [AGAIN])
        self._snapshot(frontier)
        self._offer(frontier, 2)
        frontier.close()
        self._acknowledge(frontier, synced=True)

        frontier = self._open()
        self._offer(frontier, 2)
        self._flush(frontier)
        self._kill(frontier)
        frontier = self._open()
        self._offer(frontier, 2)
        self._sync(frontier)
        self._kill(frontier)

    def end(self) -> None:
        """Give up what is open, as a process does that dies."""
        if self.frontier is not None:
            self.frontier.partition.abandon()

    def _open(self, *, recrawls: bool = False) -> DurableFrontier:
        hour = self._clock.hour
        partition = self._kind(self.directory, self.trace, disk=self._disk, hour=hour)
        assert partition.frames >= self.flushed
        self.frontier = frontier_on(
            partition, self._clock, recrawl_before=self._clock.hour if recrawls else None
        )
        return self.frontier

    def _offer(self, frontier: DurableFrontier, count: int) -> None:
        for _ in range(count):
            path = next(self._paths)
            offer = offer_of(path % 3, path, priority=path % 2, extra={"n": path} if path % 2 else None)
            assert frontier.offer(offer)
            self.offered.append(offer.key)

    def _settle(self, frontier: DurableFrontier, outcomes: list[Outcome]) -> None:
        """Settle one row with each of *outcomes*, release another, and leave a third in flight."""
        dispatches = [frontier.next(0.0) for _ in range(len(outcomes) + 2)]
        for dispatch, outcome in zip(dispatches, outcomes, strict=False):
            assert dispatch is not None
            frontier.settle(dispatch.key, outcome, 0.0)
        assert dispatches[-2] is not None
        frontier.release(dispatches[-2].key, 0.0)

    def _flush(self, frontier: DurableFrontier) -> None:
        frontier.flush()
        self._acknowledge(frontier)

    def _sync(self, frontier: DurableFrontier) -> None:
        frontier.flush()
        frontier.sync()
        self._acknowledge(frontier, synced=True)

    def _snapshot(self, frontier: DurableFrontier) -> None:
        """Write a snapshot while the crawl goes on: another thread has the disk, and we the rows."""
        # Its file is begun after our changes, so that the calls are the same each time.
        self._disk.go_on.clear()
        try:
            frontier.snapshot()
            assert isinstance(frontier.partition, TracedPartition)
            moment = frontier.partition.frames
            self._offer(frontier, 3)
            self._settle(frontier, OUTCOMES[:2])
        finally:
            self._disk.go_on.set()
        frontier.partition._end_snapshot()
        self.flushed, self.synced = max(self.flushed, moment), max(self.synced, moment)

    def _acknowledge(self, frontier: DurableFrontier, *, synced: bool = False) -> None:
        assert isinstance(frontier.partition, TracedPartition)
        self.flushed = frontier.partition.frames
        self.kept = list(self.offered)
        if synced:
            self.synced = self.flushed

    def _kill(self, frontier: DurableFrontier) -> None:
        frontier.partition.abandon()
        self.frontier = None
        self.offered = list(self.kept)


def check(session: Session, least: int) -> None:
    """Fail unless the directory holds what the frames say up to a point at *least* that far."""
    directory, trace = session.directory, session.trace
    partition = TracedPartition(directory, list(trace), disk=CountingDisk())
    frames = partition.frames
    assert least <= frames <= len(trace)
    assert contents_of(partition) == contents_by(trace[:frames])
    if least == session.flushed:
        assert all(partition.find(*key) is not None for key in session.kept)
    frontier = frontier_on(partition)
    assert frontier.offer(offer_of(77, 77))
    frontier.flush()
    contents = contents_of(partition)
    partition.abandon()

    again = opened(directory)
    assert contents_of(again) == contents
    assert frontier_on(again).lapsed == 0
    again.close(HOUR + 20_000)
    assert not [name for name in names_in(directory) if name.endswith(".open")]
    for path in directory.glob("snap-*"):
        with FrontierFile.open(path) as file:
            verify(file)
    shutil.rmtree(directory)


def calls_of_a_session(directory: Path, kind: type[TracedPartition] = TracedPartition) -> list[str]:
    disk = CountingDisk()
    session = Session(directory, disk, kind)
    session.run()
    check(session, len(session.trace))
    return disk.calls


def points(directory: Path, part: int, kind: type[TracedPartition] = TracedPartition) -> list[int]:
    """Return the numbers of calls to try: one in twenty, from the *part*th on, or more where requested.

    Of the many writes to a snapshot's file only a few are looked at. `make crash-test` tries every call.
    """
    calls = calls_of_a_session(directory, kind)
    around = zip(["", *calls], calls, [*calls[1:], ""], strict=False)
    chosen = [
        number
        for number, neighbours in enumerate(around, 1)
        if set(neighbours) != {"write"} or number % 20 == 0
    ]
    return chosen[part :: 1 if "AMICRAWL_HISTORIES" in os.environ else PARTS]


def test_a_session_makes_every_kind_of_call(tmp_path: Path) -> None:
    kinds = {call.split()[0] for call in calls_of_a_session(tmp_path / "f")}
    assert kinds == {
        "create",
        "write",
        "write_at",
        "sync",
        "truncate",
        "rename",
        "remove",
        "sync_directory",
        "reserve",
        "temporary",
    }


@pytest.mark.parametrize(
    ("part", "code", "kind"),
    [(0, errno.ENOSPC, TracedPartition), (1, errno.EIO, DividedPartition)],
)
def test_whatever_call_fails_nothing_acknowledged_is_lost(
    tmp_path: Path, part: int, code: int, kind: type[TracedPartition]
) -> None:
    """Once; the crawl then tries to end well, which must make nothing worse."""
    directory = tmp_path / "frontier"
    for fatal in points(directory, part, kind):
        session = Session(directory, FailingDisk(fatal, code), kind)
        with pytest.raises(OutputError, match=os.strerror(code)):
            session.run()
        if session.frontier is not None:
            with suppress(OutputError):
                session.frontier.close()
        session.end()
        check(session, session.flushed)


def test_whatever_call_is_the_last_nothing_flushed_is_lost(tmp_path: Path) -> None:
    directory = tmp_path / "frontier"
    for fatal in points(directory, 2, DividedPartition):
        session = Session(directory, MortalDisk(fatal), DividedPartition)
        with pytest.raises(KilledError):
            session.run()
        session.end()
        check(session, session.flushed)


@pytest.mark.parametrize("all_is_lost", [True, False])
def test_whenever_the_power_is_cut_nothing_synced_is_lost(tmp_path: Path, all_is_lost: bool) -> None:
    """Either everything that was not forced to disk is lost, or any part of it."""
    directory = tmp_path / "frontier"
    kind = TracedPartition if all_is_lost else DividedPartition
    for fatal in [*points(directory, 3 + all_is_lost, kind), NEVER]:
        disk = PowerDisk(directory, fatal)
        session = Session(directory, disk, kind)
        with suppress(KilledError):
            session.run()
        session.end()
        disk.cut_power(None if all_is_lost else random.Random(fatal))
        check(session, session.synced)


def test_what_a_killed_process_flushed_is_forced_to_disk_before_what_follows(tmp_path: Path) -> None:
    """Otherwise a power cut opens a hole before frames that were acknowledged as synced."""
    directory = tmp_path / "frontier"
    disk = PowerDisk(directory)
    for path in range(2):
        frontier = frontier_on(opened(directory, disk=disk))
        frontier.offer(offer_of(1, path))
        frontier.flush()
        frontier.partition.abandon()
    frontier = frontier_on(opened(directory, disk=disk))
    frontier.offer(offer_of(1, 2))
    frontier.flush()
    frontier.sync()
    frontier.partition.abandon()
    disk.cut_power()
    partition = opened(directory)
    assert [partition.find(1, path) for path in range(3)] == [0, 1, 2]
    partition.abandon()


def test_a_new_directory_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=os.strerror(errno.EROFS)):
        opened(tmp_path / "frontier", disk=ReadOnlyDisk())


def test_a_directory_that_is_read_only_now_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "frontier"
    session = Session(directory, CountingDisk())
    session.run()
    before = {path: path.read_bytes() for path in directory.iterdir()}
    with pytest.raises(OutputError, match=os.strerror(errno.EROFS)):
        opened(directory, disk=ReadOnlyDisk())
    assert {path: path.read_bytes() for path in directory.iterdir()} == before
    check(session, len(session.trace))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "frontier"
    opened(directory).abandon()
    directory.chmod(0o555)
    with pytest.raises(OutputError, match="Permission denied"):
        opened(directory, disk=Disk())
    directory.chmod(0o755)
    opened(directory).abandon()


# Files may not grow beyond a limit: to the process that is a full disk, and not a double of one.
FILL = """
import resource, sys
from pathlib import Path
from frontier.live.crawls import HOUR, META, frontier_on, offer_of
from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.meguri import LivePartition

directory, what, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
frontier = frontier_on(LivePartition(directory, disk=Disk(), hour=HOUR, meta=META))
for path in range(600):
    frontier.offer(offer_of(path % 9, path))
frontier.flush()
if what == "table":  # whose journal is longer than it
    frontier.snapshot()
    frontier.partition._end_snapshot()
kept = 600
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    while what != "snapshot":
        frontier.offer(offer_of(1, kept))
        frontier.flush()
        kept += 1
    frontier.snapshot()
    frontier.partition._end_snapshot()
except OutputError as error:
    assert "File too large" in str(error), error
    try:
        frontier.close()
    except OutputError as error:
        frontier.partition.abandon()
    print(kept)
"""


@pytest.mark.parametrize(
    ("what", "limit"), [("journal", 130_000), ("table", 130_000), ("snapshot", 20_000)]
)
def test_on_a_full_disk_the_crawl_ends_and_keeps_what_it_had(
    tmp_path: Path, what: str, limit: int
) -> None:
    directory = tmp_path / "frontier"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FILL, directory, what, str(limit)],
        env={**os.environ, "PYTHONPATH": f"{Path(__file__).parents[2]}:{Path(__file__).parents[3]}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    kept = int(done.stdout)
    assert kept >= 600
    partition = LivePartition(directory, disk=Disk(), hour=HOUR, meta=META)
    assert all(partition.find(path % 9, path) is not None for path in range(600))
    assert all(partition.find(1, path) is not None for path in range(600, kept))
    frontier = frontier_on(partition)
    assert frontier.offer(offer_of(5, 10**6))
    frontier.close()
    with FrontierFile.open(max(directory.glob("snap-*"), key=lambda path: len(path.name))) as file:
        verify(file)
