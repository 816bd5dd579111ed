"""Every call to the disk failing once, or being the last one: what was promised holds all the same."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from faulty_disks import FaultyDisk, KilledError, QuickDisk, fatal_calls
from record.exchanges import (
    BEGAN,
    capture,
    check_agreement,
    foreign_verdicts,
    item,
    names_in,
    numbered_bytes,
    open_archive,
    open_writer,
    pages,
    table_rows,
    urls_of,
)

from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.listing import CrawlJson
from amicrawl.record.archive import WarcStage
from amicrawl.record.repair import repair
from amicrawl.record.warc import record_ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.record import CaptureItem


BATCHES = [
    pages(5),
    [item(capture("http://long/", body=numbered_bytes()(1_100_000)))],
    pages(5, first=5),
]


def crawl(directory: Path, disk: Disk, stored: list[CaptureItem]) -> None:
    """Store `BATCHES` in *directory*; *stored* has those whose storing was acknowledged."""
    # Without chance, so that each round makes the same calls.
    archive = open_archive(
        directory, disk=disk, durability="full", warc_size=4000, random=numbered_bytes()
    )
    try:
        for batch in BATCHES:
            archive.store(batch)
            stored += batch
        archive.seal()
    except (OutputError, KilledError) as error:
        if isinstance(error, OutputError):
            with pytest.raises(OutputError):
                archive.seal()
            with pytest.raises(OutputError):
                archive.store(pages(1))
        raise
    finally:
        archive.close()


def check_sealed(directory: Path) -> None:
    """Fail unless what looks finished in *directory* is."""
    for path in directory.glob("*.warc.gz"):
        types, by_warcio, by_fastwarc = foreign_verdicts(path)
        assert types[0] == "warcinfo"
        assert "response" in types
        assert set(by_warcio) == {True}
        assert all(False not in verdict for verdict in by_fastwarc)
    if (directory / "captures.parquet").exists():
        table_rows(directory)


def mend_and_check(directory: Path, stored: list[CaptureItem]) -> None:
    """Repair *directory*, and fail unless all that was acknowledged is there, once."""
    check_sealed(directory)
    repair(directory, disk=QuickDisk())
    assert not [name for name in names_in(directory) if name.endswith(".open")]
    check_sealed(directory)
    urls = []
    if (directory / "captures.parquet").exists():
        check_agreement(directory)
        urls = [row["url"] for row in table_rows(directory)]
    assert len(set(urls)) == len(urls)
    assert set(urls) >= set(urls_of(stored))


@pytest.mark.parametrize("killed", [False, True])
def test_a_crawl_whose_disk_fails_at_any_call_keeps_what_it_acknowledged(
    tmp_path: Path, killed: bool
) -> None:
    seen = set()
    told: list[str] = []
    directory = tmp_path / "crawl"
    whole = FaultyDisk(0)
    (tmp_path / "whole").mkdir()
    crawl(tmp_path / "whole", whole, [])
    assert names_in(tmp_path / "whole")[-1] == "captures.parquet"
    for fatal in fatal_calls(whole):
        directory.mkdir()
        disk = FaultyDisk(fatal, killed=killed)
        stored: list[CaptureItem] = []
        with pytest.raises((KilledError, OutputError)) as raised:
            crawl(directory, disk, stored)
        assert disk.calls[:fatal] == whole.calls[:fatal], "a session makes the same calls each time"
        if not killed:
            told.append(str(raised.value))
        mend_and_check(directory, stored)
        seen.add(disk.failed_at.split()[0])
        shutil.rmtree(directory)
    assert seen == {"create", "write", "sync", "sync_directory", "rename", "remove", "temporary"}
    assert bool(told) == (not killed)
    for message in told:
        assert message.startswith(str(directory))
        assert "No space left on device. Free disk space" in message


def left_behind(directory: Path) -> Path:
    """Return a directory with one of everything that a repair has to deal with."""
    directory.mkdir()
    for first in (0, 4):
        archive = open_archive(directory, warc_size=10**6)
        archive.store(pages(4, first=first))
        if first == 0:
            archive.seal()
        archive.close()
    with next(directory.glob("*.warc.gz.open")).open("r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.truncate()
    lines = (directory / "captures-00001.open").read_bytes().splitlines(keepends=True)
    (directory / "captures-00001.open").write_bytes(
        b"".join([lines[0], b"torn\n", *lines[2:]]) + b'{"url'
    )
    (directory / "captures.parquet.open").write_bytes(b"half")
    (directory / "ami-00099.warc.gz.open").write_bytes(b"torn")
    return directory


def calls_of_a_repair(left: Path, directory: Path) -> FaultyDisk:
    """Return the disk of a repair of a copy of *left* that went well."""
    shutil.copytree(left, directory)
    disk = FaultyDisk(0)
    repair(directory, disk=disk)
    return disk


def test_a_repair_that_dies_at_any_call_is_finished_by_the_next(tmp_path: Path) -> None:
    left = left_behind(tmp_path / "left")
    once = tmp_path / "once"
    shutil.copytree(left, once)
    repair(once, disk=QuickDisk())
    check_agreement(once)
    expected = {path.name: path.read_bytes() for path in once.iterdir()}
    seen = set()
    for fatal in fatal_calls(calls_of_a_repair(left, tmp_path / "whole")):
        directory = tmp_path / "crawl"
        shutil.copytree(left, directory)
        disk = FaultyDisk(fatal, killed=True)
        with pytest.raises(KilledError):
            repair(directory, disk=disk)
        seen.add(disk.failed_at.split()[0])
        check_sealed(directory)
        repair(directory, disk=QuickDisk())
        found = {path.name: path.read_bytes() for path in directory.iterdir()}
        assert found == expected, disk.failed_at
        shutil.rmtree(directory)
    assert seen == {"create", "write", "sync", "sync_directory", "truncate", "rename", "remove"}


def test_a_repair_whose_disk_fails_says_so_and_can_be_done_again(tmp_path: Path) -> None:
    left = left_behind(tmp_path / "left")
    told: list[str] = []
    directory = tmp_path / "crawl"
    for fatal in fatal_calls(calls_of_a_repair(left, tmp_path / "whole")):
        shutil.copytree(left, directory)
        with pytest.raises(OutputError) as raised:
            repair(directory, disk=FaultyDisk(fatal))
        told.append(str(raised.value))
        repair(directory, disk=QuickDisk())
        check_agreement(directory)
        shutil.rmtree(directory)
    assert len(told) > 10
    assert all(str(directory) in message for message in told)


def test_a_crawl_json_is_the_old_or_the_new_one_whatever_call_fails(tmp_path: Path) -> None:
    for fatal in count(1):
        disk = FaultyDisk(fatal)
        directory = tmp_path / str(fatal)
        directory.mkdir()
        (directory / "crawl.json").write_text('{"state": "finished"}')
        try:
            CrawlJson(directory, started=BEGAN, asked={}, settings={}, versions={}, disk=disk)
            break
        except OutputError:
            text = (directory / "crawl.json").read_text()
            # Only the name's way to the disk may fail once the new one is in place.
            assert ('"running"' in text) == (disk.failed_at == "sync_directory")
            assert text.rstrip().endswith("}")
    assert fatal > 4


class PowerCutDisk(Disk):
    """A disk that knows what was forced to it, and forgets some of the rest when the power fails."""

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}
        self._forced: dict[Path, int] = {}

    def create(self, path: Path) -> int:
        descriptor = super().create(path)
        self._paths[descriptor] = path
        self._forced[path] = 0
        return descriptor

    def sync(self, descriptor: int) -> None:
        self._forced[self._paths[descriptor]] = os.fstat(descriptor).st_size

    def cut_power(self, dice: random.Random) -> None:
        for path, forced in self._forced.items():
            if not path.exists():
                continue
            size = path.stat().st_size
            kept = dice.randint(forced, size)
            with path.open("r+b") as file:
                file.truncate(kept)
                # Some file systems grow the file first and fill it later.
                file.truncate(dice.choice([kept, size]))


@pytest.mark.parametrize("durability", ["none", "normal", "full"])
def test_after_a_power_cut_rows_and_records_agree(tmp_path: Path, durability: str) -> None:
    dice = random.Random(durability)
    for turn in range(15):
        directory = tmp_path / str(turn)
        directory.mkdir()
        disk = PowerCutDisk()
        stored: list[CaptureItem] = []
        archive = open_archive(directory, disk=disk, durability=durability, warc_size=6000)
        for first in range(0, dice.randint(1, 40), 4):
            batch = pages(4, first=first)
            archive.store(batch)
            stored += batch
        archive.close()
        disk.cut_power(dice)
        mend_and_check(directory, stored if durability == "full" else [])


def test_a_writer_that_failed_is_not_trusted_again(tmp_path: Path) -> None:
    disk = FaultyDisk(3)
    writer = open_writer(tmp_path, disk=disk)
    stage = WarcStage(writer, ids=record_ids(os.urandom))
    stage.add(item())
    with pytest.raises(OutputError) as first:
        stage.commit(sync=True)
    assert disk.failed_at == "sync"
    attempts: list[Callable[[], object]] = [
        lambda: stage.add(item()),
        lambda: writer.commit(sync=True),
        writer.seal,
    ]
    for attempt in attempts:
        with pytest.raises(OutputError) as again:
            attempt()
        assert again.value is first.value
    writer.close()
    assert names_in(tmp_path) == ["ami-00000.warc.gz.open"]


CHILD = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from amicrawl.errors import OutputError
from record.exchanges import open_archive, pages
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
archive = open_archive(Path(sys.argv[1]), warc_size=10**6, durability="full")
try:
    for first in range(0, 1000, 4):
        archive.store(pages(4, first=first))
        print(first + 4, flush=True)
except OutputError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def test_a_full_disk_stops_the_crawl_loudly_and_loses_nothing(tmp_path: Path) -> None:
    line = [sys.executable, "-c", CHILD, str(tmp_path), str(Path(__file__).parents[1])]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 4, done.stderr
    assert str(tmp_path) in done.stderr
    assert "File too large" in done.stderr
    acknowledged = int(done.stdout.splitlines()[-1])
    assert 0 < acknowledged < 1000
    mend_and_check(tmp_path, pages(acknowledged))


def test_a_directory_that_cannot_be_written_to_is_an_output_error(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(OutputError, match="No such file or directory"):
        archive.store(pages(1))
    archive.close()
    with pytest.raises(OutputError, match="cannot be opened"):
        open_archive(tmp_path)


WRITER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from record.exchanges import open_archive, pages
for line in sys.stdin:
    child = os.fork()
    if not child:
        break
    os.waitpid(child, 0)
    print("gone", flush=True)
else:
    sys.exit()
print(os.getpid(), flush=True)
first = int(line)
archive = open_archive(Path(sys.argv[1]), warc_size=30_000, durability="normal")
while True:
    archive.store(pages(7, first=first))
    first += 7
    print(first, flush=True)
"""


def test_a_crawl_killed_at_any_moment_leaves_what_a_repair_makes_whole(tmp_path: Path) -> None:
    dice = random.Random(20261120)
    acknowledged = 0
    line = [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parents[1])]
    # One process has imported everything; each crawl is a fork of it.
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forking:
        assert forking.stdin is not None
        assert forking.stdout is not None
        for _ in range(10):
            forking.stdin.write(f"{acknowledged}\n")
            forking.stdin.flush()
            child = int(forking.stdout.readline())
            for _ in range(dice.randint(1, 40)):
                acknowledged = int(forking.stdout.readline())
            os.kill(child, signal.SIGKILL)
            # What it still said before it was gone counts too.
            while (said := forking.stdout.readline()) != "gone\n":
                acknowledged = int(said)
            check_sealed(tmp_path)
            repair(tmp_path, disk=QuickDisk())
            check_agreement(tmp_path)
            urls = {row["url"] for row in table_rows(tmp_path)}
            assert urls >= set(urls_of(pages(acknowledged)))
        forking.stdin.close()
    assert acknowledged > 70
    assert len(list(tmp_path.glob("*.warc.gz"))) > 10
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
