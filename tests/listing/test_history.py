"""The history of a crawl: bounded, thinned evenly, continued after resumes and kills."""

from __future__ import annotations

import errno
import itertools
from typing import TYPE_CHECKING

from amicrawl.disk import Disk
from amicrawl.listing import HistoryFile, read_history
from amicrawl.listing.history import HISTORY_NAME

if TYPE_CHECKING:
    from pathlib import Path


def begun(directory: Path, at: float, *, limit: int = 1 << 20) -> HistoryFile:
    file = HistoryFile(directory, disk=Disk(), limit=limit)
    file.begin(at)
    return file


def test_a_history_has_the_starts_the_ends_and_the_moments_between(tmp_path: Path) -> None:
    file = begun(tmp_path, 1000.0)
    file.note(1001.0, "running", {"ok": 3, "waiting": 7})
    file.end(1002.0, "shutdown", {"ok": 4})
    begun(tmp_path, 2000.0).note(2001.0, "paused", {"failed": 1})
    history = read_history(tmp_path)
    assert [(run.started, run.ended, run.reason) for run in history.runs] == [
        (1000.0, 1002.0, "shutdown"),
        (2000.0, None, ""),
    ]
    assert [(moment.at, moment.run, moment.state) for moment in history.moments] == [
        (1001.0, 1, "running"),
        (1002.0, 1, "finished"),
        (2001.0, 2, "paused"),
    ]
    assert history.moments[0].numbers["ok"] == 3
    assert history.moments[0].numbers["failed"] == 0


def test_moments_are_as_far_apart_as_the_file_says(tmp_path: Path) -> None:
    file = begun(tmp_path, 0.5)
    for tenth in range(50):
        file.note(1 + tenth / 10, "running", {"ok": tenth})
    assert len(read_history(tmp_path).moments) in range(5, 7)


def test_a_clock_that_is_set_back_does_not_end_the_moments(tmp_path: Path) -> None:
    file = begun(tmp_path, 9000.0)
    for second in range(5):
        file.note(9000.0 + second, "running", {"ok": second})
    for second in range(5):
        file.note(5000.0 + second, "running", {"ok": 5 + second})
    assert [moment.numbers["ok"] for moment in read_history(tmp_path).moments] == list(range(10))


def test_a_year_stays_within_the_limit_evenly_spread_and_with_its_starts(tmp_path: Path) -> None:
    limit = 8192
    for run in range(3):
        file = begun(tmp_path, 1e9 + run * 100_000, limit=limit)
        for second in range(3000):
            file.note(1e9 + run * 100_000 + second, "running", {"ok": second, "bytes": second * 1000})
    history = read_history(tmp_path)
    assert (tmp_path / HISTORY_NAME).stat().st_size <= limit
    assert len(history.runs) == 3
    last = [moment.at for moment in history.moments if moment.run == 3]
    gaps = [later - sooner for sooner, later in itertools.pairwise(last)]
    assert max(gaps) <= 4 * min(gaps)
    assert last[-1] - last[0] > 2500


class DiskFullAtTimes(Disk):
    """A disk that is full while `is_full` says so; half of what is written then is there."""

    is_full = False

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        if self.is_full:
            super().write(descriptor, block[: len(block) // 2])
            raise OSError(errno.ENOSPC, "full")
        return super().write(descriptor, block)


def test_a_disk_that_was_full_costs_no_line_behind_it(tmp_path: Path) -> None:
    disk = DiskFullAtTimes()
    file = HistoryFile(tmp_path, disk=disk)
    file.begin(1000.0)
    disk.is_full = True
    file.note(1001.0, "running", {"ok": 1})
    disk.is_full = False
    file.end(1002.0, "finished", {"ok": 2})
    history = read_history(tmp_path)
    assert [moment.at for moment in history.moments] == [1002.0]
    assert history.runs[0].reason == "finished"


def test_a_disk_that_is_full_makes_moments_no_rarer(tmp_path: Path) -> None:
    disk = DiskFullAtTimes()
    file = HistoryFile(tmp_path, disk=disk, limit=2000)
    file.begin(1000.0)
    second = itertools.count(1001)
    while (tmp_path / HISTORY_NAME).stat().st_size < 1960:
        file.note(next(second), "running", {"ok": 1})
    before, disk.is_full = file.every, True
    for _ in range(500):
        file.note(next(second), "running", {"ok": 1})
    assert file.every == before


def test_a_torn_last_line_and_lines_of_others_are_passed_over(tmp_path: Path) -> None:
    begun(tmp_path, 1000.0).note(1001.0, "running", {"ok": 3})
    with (tmp_path / HISTORY_NAME).open("ab") as file:
        file.write(b'[1]\n{"at":"x"}\n{"at":1e300,"state":"running"}\n{"at":true}\n{"at":1002.0,"sta')
    begun(tmp_path, 1003.0).note(1004.0, "running", {"ok": 1})
    history = read_history(tmp_path)
    assert [moment.at for moment in history.moments] == [1001.0, 1004.0]
    assert len(history.runs) == 2


def test_numbers_that_are_none_count_as_nothing(tmp_path: Path) -> None:
    begun(tmp_path, 1000.0)
    with (tmp_path / HISTORY_NAME).open("ab") as file:
        file.write(b'{"at":1001.0,"state":"running","ok":-4,"failed":"many","free":true}\n')
    (moment,) = read_history(tmp_path).moments
    assert {moment.numbers[name] for name in ("ok", "failed", "free")} == {0}
