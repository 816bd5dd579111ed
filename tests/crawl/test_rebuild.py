"""A frontier that lost a part is refused, and made anew: what is archived is not fetched again."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import warm_processes
from archive_reading import rows
from loopback import PROJECT, RawServer, command, crawl, crawl_site, environment, page, write_lines

from amicrawl.config import Identity
from amicrawl.crawl.index_rows import rows_from
from amicrawl.crawl.reconciling import Look
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode
from amicrawl.meguri import IDENTITY, LivePartition
from amicrawl.record.captures import COLUMNS, EMPTY, NULLABLE
from amicrawl.record.journal import NAMES
from amicrawl.record.table import write_table
from amicrawl.urls import url_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PAGES = 300
MOST_IN_FLIGHT = 4
SETTINGS = {
    "AMICRAWL_INFLIGHT_MAX": str(MOST_IN_FLIGHT),
    "AMICRAWL_PER_HOST": "4",
    "AMICRAWL_DURABILITY": "none",
}


def amicrawl(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "amicrawl", *words]
    return warm_processes.run(line, capture_output=True, text=True, cwd=PROJECT, check=False)


def killed(seeds: Path, out: Path, server: RawServer, *, after: int = 120) -> None:
    """Crawl, and kill the crawl when the server was contacted so often."""
    child = warm_processes.Popen(
        command(seeds, out, settings=SETTINGS),
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(server.requests) < after and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait(30)


def requested_twice(server: RawServer) -> int:
    """How many requests were for a page that was requested before."""
    counts = Counter(head.split(b" ")[1] for head in server.requests)
    return sum(count - 1 for count in counts.values())


def seeds_of(server: RawServer, path: Path) -> Path:
    return write_lines(path / "seeds.txt", [f"{server.url}/{n}" for n in range(PAGES)])


def newest_log(out: Path) -> Path:
    logs = [path for path in (out / "frontier").glob("log-*") if path.stat().st_size]
    return max(logs, key=lambda path: int(path.name[4:]))


def test_a_journal_that_is_missing_is_missed_and_the_way_out_is_one_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"ok"), pause=0.005) as server:
        seeds = seeds_of(server, tmp_path)
        killed(seeds, out, server)
        newest_log(out).unlink()
        # By its name: what the killed one had sent may be read by the server only now.
        named = SETTINGS | {"AMICRAWL_OPERATOR": "https://refused.example/"}
        refused = crawl(seeds, out, settings=named)
        assert not [head for head in server.requests if b"refused.example" in head]
        assert refused.returncode == ExitCode.DAMAGED
        assert "the log is missing" in refused.stderr
        assert f"amicrawl frontier rebuild {out}/frontier" in refused.stderr
        verified = amicrawl("frontier", "verify", str(out))
        assert verified.returncode == ExitCode.DAMAGED
        assert "is damaged: 1 finding" in verified.stdout
        made = amicrawl("frontier", "rebuild", f"{out}/frontier")
        assert made.returncode == 0, made.stderr
        assert f"{PAGES} URLs" in made.stdout
        assert "kept as frontier.damaged-1" in made.stdout
        assert amicrawl("frontier", "verify", str(out)).returncode == 0
        done = crawl(seeds, out, settings=SETTINGS)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert requested_twice(server) <= MOST_IN_FLIGHT
    assert len({row["url"] for row in rows(out)}) == PAGES


@pytest.mark.parametrize(
    "lose",
    [
        lambda frontier: [path.write_bytes(b"MEG1") for path in frontier.glob("snap-*")],
        lambda frontier: [path.unlink() for path in frontier.glob("log-*")],
        shutil.rmtree,
    ],
    ids=["snapshots damaged", "journals missing", "all of it"],
)
def test_a_crawl_with_that_setting_makes_its_frontier_anew(
    tmp_path: Path, lose: Callable[[Path], object]
) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"ok"), pause=0.005) as server:
        seeds = seeds_of(server, tmp_path)
        killed(seeds, out, server)
        lose(out / "frontier")
        done = crawl(seeds, out, settings=SETTINGS, arguments=["rebuild=1"])
        assert done.returncode == ExitCode.DONE, done.stderr
        assert "The frontier was made anew" in done.stderr
        assert requested_twice(server) <= MOST_IN_FLIGHT
    assert len({row["url"] for row in rows(out)}) == PAGES


def test_without_an_index_the_records_say_what_is_archived(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"ok"), pause=0.005) as server:
        seeds = seeds_of(server, tmp_path)
        crawl(seeds, out, settings=SETTINGS)
        shutil.rmtree(out / "frontier")
        (out / "captures.parquet").unlink()
        made = amicrawl("frontier", "rebuild", str(out))
        assert made.returncode == 0, made.stderr
        done = crawl(seeds, out, settings=SETTINGS)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert requested_twice(server) == 0


def test_a_frontier_that_is_gone_is_spoken_of(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(5)])
        crawl(seeds, out)
        shutil.rmtree(out / "frontier")
        done = crawl(seeds, out)
    assert "holds 5 captures and no frontier" in done.stderr
    assert f"amicrawl frontier rebuild {out}" in done.stderr


def test_a_site_finds_what_is_left_of_it_from_the_records_of_its_pages(tmp_path: Path) -> None:
    """Each page links to the next two: what was not fetched is named in stored pages only."""
    out = tmp_path / "out"

    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        number = int(path[1:] or 0)
        links = "".join(f'<a href="/{n}">n</a>' for n in (number + 1, number + 2) if n < 60)
        return page(f"<html><title>{number}</title>{links}</html>".encode(), "Content-Type: text/html")

    with RawServer(respond) as server:
        settings = {"AMICRAWL_ROBOTS": "ignore", **SETTINGS}
        first = crawl_site(f"{server.url}/0", out, settings={**settings, "AMICRAWL_STOP_PAGES": "20"})
        assert first.returncode == ExitCode.LIMIT, first.stderr
        shutil.rmtree(out / "frontier")
        made = amicrawl("frontier", "rebuild", str(out))
        assert made.returncode == 0, made.stderr
        # What is known of a page without reading any is where it was first found.
        found = amicrawl("frontier", "show", str(out), f"{server.url}/2", "--json")
        assert json.loads(found.stdout)["row"]["via"] == f"{server.url}/0"
        done = crawl_site(f"{server.url}/0", out, settings=settings)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert requested_twice(server) == 0
    assert len(rows(out)) == 60


@pytest.mark.parametrize("hours", [-2, 30 * 24])
def test_whatever_the_clock_said_the_captures_of_a_killed_crawl_are_known(
    tmp_path: Path, hours: int
) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"ok"), pause=0.005) as server:
        seeds = seeds_of(server, tmp_path)
        killed(seeds, out, server)
        (journal,) = out.glob("captures-*.open")
        lines = [json.loads(line) for line in journal.read_bytes().splitlines()[:-1]]
        for line in lines:
            line["fetched_at"] += hours * 3_600_000
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
        newest_log(out).write_bytes(b"")  # what the frontier had heard of is lost, too
        done = crawl(seeds, out, settings=SETTINGS)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert requested_twice(server) <= 2 * MOST_IN_FLIGHT


def test_what_is_found_in_a_long_index_does_not_wait_in_memory_for_its_end(tmp_path: Path) -> None:
    urls = [f"http://example.org/{number}" for number in range(10_000)]
    empty = {name: None if name in NULLABLE else EMPTY[kind] for name, kind in COLUMNS}
    captures = [empty | {"url": url, "status": 200, "fetched_at": 1_790_000_000_000} for url in urls]
    write_table(tmp_path, [tuple(row[name] for name in NAMES) for row in captures], disk=Disk())
    identity = {IDENTITY: Identity.EXACT.value.encode()}
    partition = LivePartition(tmp_path / "frontier", disk=Disk(), hour=1, meta=identity)
    look = Look(
        partition,
        tmp_path,
        key_of=lambda url: url_key(url, Identity.EXACT),
        ours=lambda _: True,
        is_made_anew=True,
    )
    written = []

    def batches() -> Iterator[object]:
        for batch in rows_from(tmp_path, 0):
            written.append(sum(path.stat().st_size for path in partition.directory.glob("log-*")))
            yield batch

    look.at(batches(), total=len(urls))
    partition.abandon()
    assert len(written) > 2
    assert written == sorted(set(written)), "each batch is in the journal before the next is read"
    assert not look.captured
