"""Live partitions and frontiers of tests: how they are opened, filled, read and compared."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from frontier.live.disks import CountingDisk

from amicrawl.frontier import DurableFrontier, Offer, Source
from amicrawl.meguri import LivePartition, Status
from amicrawl.meguri.format.schema import EMPTY_ARENA, HOST_ROW, ROW, packing_of
from amicrawl.meguri.rows import HostRow, UrlRow
from amicrawl.meguri.snapshot import OPTIONS
from amicrawl.meguri.store.journal import FrameKind, frame_at, frames_of
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.frontier import Dispatch, Outcome
    from amicrawl.meguri.format.schema import Partition

HOUR = 472_222
META = {b"amicrawl.identity": b"exact"}
ROW_OCTETS = 103


class Clock:
    """A wall clock that stands still until it is moved."""

    def __init__(self, hour: int = HOUR) -> None:
        self.hour = hour

    def __call__(self) -> float:
        return self.hour * 3600.0


class TracedPartition(LivePartition):
    """A live partition whose every frame is kept in *trace*, which is all that it may say later."""

    def __init__(self, directory: Path, trace: list[bytes], *, disk: Disk, hour: int = HOUR) -> None:
        self.trace = trace
        super().__init__(directory, disk=disk, hour=hour, meta=META)

    @property
    def frames(self) -> int:
        """How many frames it has seen since its first day."""
        return self._lsn - 1

    def _hand_over(self) -> None:
        del self.trace[self._lsn - 1 :]
        self.trace += [frames_of([change], lsn) for lsn, change in enumerate(self._waiting, self._lsn)]
        super()._hand_over()


class DividedPartition(TracedPartition):
    """One whose snapshots soon have more strings than one of their files may have."""

    options = replace(OPTIONS, most_strings=600)


class Contents(NamedTuple):
    """Everything in a partition, to be compared."""

    rows: dict[bytes, bytes]
    hosts: dict[bytes, bytes]
    arena: bytes


def contents_of(partition: LivePartition) -> Contents:
    """Return what *partition* holds; each row must be found by its key."""
    state = partition.state
    rows = {}
    for number in range(len(state.rows)):
        if number not in state.removed:
            packed = state.rows.read(number)
            row = UrlRow._make(packing_of(ROW).unpack(packed))
            assert partition.find(row.host, row.path) == number
            rows[packed[:16]] = packed
    hosts = {}
    for host, number in state.host_numbers.items():
        packed = state.hosts.read(number)
        assert partition.host(host) == HostRow._make(packing_of(HOST_ROW).unpack(packed))
        hosts[packed[:8]] = packed
    state.arena.write_out()
    return Contents(rows, hosts, bytes(state.arena.mapped(len(state.arena))))


def contents_by(frames: Iterable[bytes]) -> Contents:
    """Return what *frames* say, by the plainest means."""
    said = Contents({}, {}, EMPTY_ARENA)
    arena = bytearray(EMPTY_ARENA)
    for block in frames:
        frame = frame_at(block, 0)
        if frame.kind is FrameKind.URL:
            said.rows[frame.body[:16]] = frame.body
        elif frame.kind is FrameKind.HOST:
            said.hosts[frame.body[:8]] = frame.body
        else:
            arena += frame.body
    return said._replace(arena=bytes(arena))


def contents_in(partition: Partition) -> Contents:
    """Return what a file says, read as a whole."""
    urls = [
        UrlRow(*values).packed()
        for values in zip(*(column.tolist() for column in partition.urls.values()), strict=True)
    ]
    names = list(partition.hosts)
    hosts = []
    for values in zip(*(partition.hosts[name].tolist() for name in names), strict=True):
        row = HostRow(*values)
        hosts.append(row._replace(resolved_ip=bytes(row.resolved_ip).ljust(16, b"\0")).packed())
    return Contents(
        {packed[:16]: packed for packed in urls},
        {packed[:8]: packed for packed in hosts},
        bytes(partition.arena),
    )


def opened(directory: Path, *, disk: Disk | None = None, hour: int = HOUR) -> LivePartition:
    """Open the partition in *directory*."""
    return LivePartition(directory, disk=disk or CountingDisk(), hour=hour, meta=META)


def as_killed(directory: Path, name: str = "killed") -> Path:
    """Return a copy of *directory* as it would be if its process were killed now."""
    copy = directory.with_name(name)
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(directory, copy)


def frontier_on(
    partition: LivePartition,
    clock: Clock | None = None,
    *,
    recrawl_before: int | None = None,
    delay: float = 0.0,
) -> DurableFrontier:
    """Return a frontier on *partition* that hands out what is due, *delay* apart, without attempts."""
    return DurableFrontier(
        partition,
        Gates(delay, 100),
        HostBreaker(1000, max_retries=0),
        InflightLimit(100, 1, 1000),
        wall=clock or Clock(),
        recrawl_before=recrawl_before,
    )


def offer_of(
    host: int, path: int, *, priority: float = 0, extra: Mapping[str, object] | None = None
) -> Offer:
    """Return the offer of a URL whose host and path are numbers."""
    seed = Seed(f"http://host-{host}.test/{path}")
    return Offer(seed, UrlKey(host, path), Source.LINK, priority, extra=extra)


def taken(frontier: DurableFrontier) -> dict[UrlKey, Dispatch]:
    """Take out everything that is due."""
    dispatches = {}
    while (dispatch := frontier.next(0.0)) is not None:
        assert dispatch.key not in dispatches
        dispatches[dispatch.key] = dispatch
    return dispatches


def fetched(frontier: DurableFrontier, outcome: Outcome) -> list[UrlKey]:
    """Take out everything that is due, settle it with *outcome*, and return the keys in their order."""
    keys = []
    while (dispatch := frontier.next(0.0)) is not None:
        assert dispatch.key not in keys
        keys.append(dispatch.key)
        frontier.settle(dispatch.key, outcome, 0.0)
    return keys


def statuses_in(partition: LivePartition) -> dict[tuple[int, int], Status]:
    """Return where each row of *partition* stands."""
    rows = (
        partition.get(number)
        for number in range(len(partition.state.rows))
        if number not in partition.state.removed
    )
    return {(row.host, row.path): Status(row.status) for row in rows}
