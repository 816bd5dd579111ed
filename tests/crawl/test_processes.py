"""One crawl in several processes: each host in one, every page once, one directory in the end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import warm_processes
from fastwarc.warc import ArchiveIterator, WarcRecordType
from loopback import (
    PROJECT,
    RawServer,
    command,
    crawl,
    environment,
    free_port,
    page,
    site_command,
    write_lines,
)

from amicrawl.archive.report import LiveFigures, figures_of
from amicrawl.config import CrawlConfig
from amicrawl.crawl.processes.child import limits_of_each
from amicrawl.crawl.processes.specification import BY_PARENT
from amicrawl.directory_lock import DirectoryLock
from amicrawl.errors import ExitCode
from amicrawl.meguri.opening import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOSTS = 12
PAGES = 6


class Web:
    """Hosts 127.0.0.1 to 127.0.0.12 on one port, whose pages link to each other's."""

    def __init__(self) -> None:
        self.pause = 0.0
        self.flows = threading.Event()
        """While it is not set, each host responds for its first pages alone, `free` of them."""
        self.flows.set()
        self.free = 1
        self.server = RawServer(self._respond)

    def url(self, host: int, path: str) -> str:
        return f"http://127.0.0.{host}:{self.server.port}/{path}"

    def requested(self) -> Counter[str]:
        """Return how often each page was requested; robots.txt apart."""
        found: Counter[str] = Counter()
        for request in self.server.requests:
            host, path = _host_and_path(request)
            if path != "/robots.txt":
                found[self.url(host, path[1:])] += 1
        return found

    def pages(self) -> set[str]:
        return {self.url(host, f"p{number}") for host in range(1, HOSTS + 1) for number in range(PAGES)}

    def _respond(self, request: bytes) -> bytes:
        host, path = _host_and_path(request)
        if path == "/robots.txt":
            return page(b"User-agent: *\nAllow: /\n")
        time.sleep(self.pause)
        if path.startswith("/p") and int(path[2:]) >= self.free:
            self.flows.wait(60)
        following = host % HOSTS + 1
        if path.startswith("/moved"):
            target = self.url(following, f"target{host}")
            return page(b"", f"Location: {target}", status="302 Found")
        number = int("".join(filter(str.isdigit, path)) or 0)
        links = [self.url(host, f"p{(number + 1) % PAGES}"), self.url(following, f"p{number % PAGES}")]
        body = "".join(f'<a href="{link}">x</a>' for link in links)
        return page(f"<html>{host}{path} {body}</html>".encode(), "Content-Type: text/html")


def _host_and_path(request: bytes) -> tuple[int, str]:
    head = request.decode("latin-1")
    host = next(line for line in head.splitlines() if line.lower().startswith("host: "))
    return int(host.split(".")[3].partition(":")[0]), head.split(" ", 2)[1]


@pytest.fixture
def web() -> Iterator[Web]:
    found = Web()
    with found.server:
        yield found


def seeds_of(web: Web, directory: Path) -> Path:
    urls = [web.url(host, path) for host in range(1, HOSTS + 1) for path in ("a1", "a2", f"moved{host}")]
    return write_lines(directory / "seeds.txt", urls)


def site_line(web: Web, out: Path, *arguments: str, **settings: str) -> list[str]:
    """Return the command of a site crawl over all hosts of *web*."""
    scope = {"AMICRAWL_INCLUDE": rf"^http://127\.0\.0\.\d+:{web.server.port}/p"}
    return site_command(web.url(1, "p0"), out, arguments=arguments, settings={**scope, **settings})


def run(line: list[str]) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        line, cwd=PROJECT, env=environment(), capture_output=True, text=True, check=False, timeout=170
    )


def begun(line: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stream:
        return warm_processes.Popen(line, cwd=PROJECT, env=environment(), stderr=stream)


def wait_until(true: Callable[[], object]) -> None:
    for _ in range(1500):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def check_whole(out: Path, *, runs: int = 1) -> dict[str, str]:
    """Check that *out* looks like the directory of one process; return the WARC file of each URL."""
    assert not (out / "processes").exists()
    assert not list(out.glob("**/*.open"))
    rows = pq.read_table(out / "captures.parquet").to_pylist()
    records = {}
    for path in out.glob("*.warc.gz"):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                url = str(record.headers["WARC-Target-URI"])
                records[path.name, record.stream_pos] = str(record.record_id), url
    for row in rows:
        number, url = records[row["warc_file"], row["warc_offset"]]
        assert (number in row["record_id"] or row["record_id"] in number, url) == (True, row["url"])
    told = json.loads((out / "crawl.json").read_text())
    assert told["settings"]["out"] == told["asked"]["out"] == str(out)
    assert (told["asked"]["shard"], told["asked"]["shards"]) == ("0", "1")
    # The counts are those of the last run.
    assert told["counts"]["rows"] == len(rows) or runs > 1
    assert {file["name"] for file in told["files"]} == {
        path.name for path in [*out.glob("*.warc.gz"), out / "captures.parquet"]
    }
    return {row["url"]: row["warc_file"] for row in rows}


def is_stopping(out: Path, processes: int) -> bool:
    """Tell whether all *processes* of the crawl into *out* begin no page any more, as they say."""
    found = [json.loads(path.read_bytes()) for path in out.glob("processes/*/control/status.json")]
    ends = [each["paused_by"] == [BY_PARENT] or each["state"] == "stopping" for each in found]
    return ends == [True] * processes


def children_of(parent: int) -> list[int]:
    text = warm_processes.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    ).stdout
    return [int(word) for word in text.split()]


def test_a_limit_divided_among_processes_stays_one() -> None:
    each = limits_of_each(CrawlConfig(bandwidth=3, inflight_max=100), 4)
    assert each == {"inflight_max": 25, "inflight_start": 16, "inflight_min": 8, "bandwidth": 1}
    assert limits_of_each(CrawlConfig(), 4)["bandwidth"] == 0


def test_a_list_is_crawled_by_two_processes_into_one_directory(web: Web, tmp_path: Path) -> None:
    seeds = seeds_of(web, tmp_path)
    seeds.write_text(seeds.read_text() + "http://[/\nsome words\n")
    out = tmp_path / "out"
    line = command(seeds, out, arguments=["processes=2"])
    done = run([sys.executable, "-m", "scrapy", "crawl", *line[line.index("seeds") :]])
    assert done.returncode == ExitCode.DONE, done.stderr
    requested = web.requested()
    expected = {
        web.url(host, path) for host in range(1, HOSTS + 1) for path in ("a1", "a2", f"moved{host}")
    }
    expected |= {web.url(host % HOSTS + 1, f"target{host}") for host in range(1, HOSTS + 1)}
    assert requested == Counter(expected), "redirects to a host of the other process are followed, once"
    rows = pq.read_table(out / "captures.parquet").to_pylist()
    archived = {row["url"]: row["warc_file"] for row in rows if row["record_id"]}
    files_of_host = defaultdict(set)
    for url, name in archived.items():
        files_of_host[url.split("/")[2]].add(name)
    assert all(len(names) == 1 for names in files_of_host.values()), "a host is contacted by one process"
    assert len(set(archived.values())) == 2, "both have work"
    counts = json.loads((out / "crawl.json").read_text())["counts"]
    assert counts["seeds_read"] >= HOSTS * 3
    assert len(load(out / "frontier").urls["host_key"]) == len(expected)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert (said[-1]["event"], said[-1]["rows"]) == ("finished", len(rows))
    faults = [line for line in said if "some words" in line.get("message", "")]
    assert len(faults) == 1, "both processes read the list, one reports its faults"

    again = crawl(seeds_of(web, tmp_path), out)
    assert again.returncode == ExitCode.DONE, again.stderr
    assert web.requested() == requested, (
        "what is done is not requested again, by another number of processes"
    )


def test_the_end_says_why_there_was_no_response_as_that_of_one_process_does(tmp_path: Path) -> None:
    port = free_port()
    seeds = write_lines(tmp_path / "seeds.txt", [f"http://127.0.0.{n}:{port}/" for n in range(1, 9)])
    ended = {}
    for processes in (1, 2):
        done = crawl(seeds, tmp_path / f"out{processes}", arguments=[f"processes={processes}"])
        assert done.returncode == ExitCode.UNREACHED, done.stderr
        ended[processes] = json.loads(done.stderr.splitlines()[-1])
    assert ended[2]["failures"] == ended[1]["failures"] == {"connection-refused": 8}
    assert ended[1].keys() == ended[2].keys()
    assert ended[2]["notes"] == [note.replace("/out1", "/out2") for note in ended[1]["notes"]]
    assert "8 connection-refused" in ended[2]["notes"][0]


def test_a_site_is_the_same_by_one_process_and_by_two(web: Web, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    done = run(site_line(web, two, "processes=2"))
    assert done.returncode == ExitCode.DONE, done.stderr
    assert web.requested() == Counter(web.pages())
    assert run(site_line(web, one)).returncode == ExitCode.DONE
    assert check_whole(two).keys() == check_whole(one).keys()
    of_one, of_two = (json.loads((out / "crawl.json").read_bytes()) for out in (one, two))
    assert of_two["settings"] == {**of_one["settings"], "out": str(two)}, "those of the command"
    assert of_two["unfinished"] is of_one["unfinished"] is False


def test_a_child_that_is_killed_is_started_again(web: Web, tmp_path: Path) -> None:
    web.flows.clear()
    out, log = tmp_path / "out", tmp_path / "log"
    parent = begun(site_line(web, out, "processes=2"), log)
    wait_until(lambda: len(web.requested()) > 8)
    os.kill(children_of(parent.pid)[0], signal.SIGKILL)
    web.flows.set()
    assert parent.wait(150) == ExitCode.DONE, log.read_text()
    assert "is started again" in log.read_text()
    assert check_whole(out).keys() >= web.pages()


def test_the_end_counts_what_a_killed_child_had_not_reported(web: Web, tmp_path: Path) -> None:
    web.flows.clear()
    out, log = tmp_path / "out", tmp_path / "log"
    parent = begun(site_line(web, out, "processes=2"), log)
    wait_until(lambda: len(web.requested()) > 8)
    for child in children_of(parent.pid):
        os.kill(child, signal.SIGKILL)
    web.flows.set()
    assert parent.wait(150) == ExitCode.DONE, log.read_text()
    ended, rows = json.loads(log.read_bytes().splitlines()[-1]), pq.read_table(out / "captures.parquet")
    assert (ended["event"], ended["rows"], ended["ok"]) == ("finished", len(rows), len(check_whole(out)))
    *_, last, _ = (out / "history.jsonl").read_bytes().splitlines()
    assert json.loads(last)["ok"] == ended["ok"], "the history has the same"


def test_a_line_that_a_killed_child_could_not_use_counts_once(web: Web, tmp_path: Path) -> None:
    out, log, seeds = tmp_path / "out", tmp_path / "log", seeds_of(web, tmp_path)
    seeds.write_text(f"gopher://old\n{seeds.read_text()}")
    slow = {"AMICRAWL_DELAY": "2"}
    parent = begun(command(seeds, out, arguments=["processes=2"], settings=slow), log)
    wait_until(lambda: len(web.requested()) > 8)
    time.sleep(1)  # until it is reported
    for child in children_of(parent.pid):
        os.kill(child, signal.SIGKILL)
    assert parent.wait(150) == ExitCode.DONE, log.read_text()
    ended = json.loads(log.read_bytes().splitlines()[-1])
    assert (ended["event"], ended["seeds_bad"], ended["seeds_read"]) == ("finished", 1, 36)


def test_the_few_hosts_of_a_list_are_divided_evenly_and_stay_where_they_are(
    web: Web, tmp_path: Path
) -> None:
    urls = [web.url(host, f"moved{host}?{number}") for host in range(1, 7) for number in range(5)]
    out, log, seeds = tmp_path / "out", tmp_path / "log", write_lines(tmp_path / "seeds.txt", urls)
    web.pause = 0.05
    line = command(seeds, out, arguments=["processes=2"], settings={"AMICRAWL_DELAY": "0.1"})
    killed = begun(line, log)
    wait_until(lambda: len(web.requested()) > 8)
    children = children_of(killed.pid)
    killed.kill()
    killed.wait()
    wait_until(lambda: not any(map(is_alive, children)))
    done = run(line)
    assert done.returncode == ExitCode.DONE, done.stderr
    rows = pq.read_table(out / "captures.parquet").to_pylist()
    targets = {web.url(host + 1, f"target{host}") for host in range(1, 7)}
    assert {row["url"] for row in rows} >= {*urls, *targets}
    of_seeds = [row for row in rows if "moved" in row["url"]]
    assert len(of_seeds) == len(urls)
    last_run = {row["host"]: row["warc_file"] for row in of_seeds}
    assert sorted(Counter(name.split("-p")[1][0] for name in last_run.values()).values()) == [3, 3]


def with_killed_parent(web: Web, directory: Path) -> Path:
    """Return the output directory of a crawl by two processes whose parent was killed on its way."""
    web.flows.clear()
    out = directory / "out"
    parent = begun(site_line(web, out, "processes=2"), directory / "log")
    wait_until(lambda: len(web.requested()) > 8)
    children = children_of(parent.pid)
    parent.kill()
    parent.wait()
    wait_until(lambda: is_stopping(out, 2))
    web.flows.set()
    wait_until(lambda: not any(map(is_alive, children)))
    return out


def test_a_crawl_in_several_processes_that_has_not_ended_is_read_as_one(
    web: Web, tmp_path: Path
) -> None:
    out = with_killed_parent(web, tmp_path)
    live, found = LiveFigures(out), inspected(out)
    assert found["rows"] == len(web.server.requests)
    assert (found["crawl"]["state"], found["is_held"]) == ("running", False)
    assert {Path(file["name"]).parts[:2] for file in found["files"]} >= {("processes", "1")}
    assert "in 2 processes has not ended" in found["notes"][0]
    assert figures_of(out).rows == live.update().rows == found["rows"]
    explained = amicrawl("explain", web.url(1, "p0"), "--dir", str(out))
    assert "captured" in explained.stdout
    refused = amicrawl("frontier", "stats", str(out))
    assert f"such as {out / 'processes' / '0'}" in refused.stderr
    before = sorted(out.rglob("*"))
    for words in (["upload", "--to", f"file://{tmp_path / 'bucket'}"], ["repair"], ["recrawl", "--all"]):
        refused = amicrawl(words[0], str(out), *words[1:])
        assert refused.returncode == ExitCode.INPUT, refused.stderr
        assert "a crawl in 2 processes that has not ended. Start its command again" in refused.stderr
    refused = amicrawl("frontier", "rebuild", str(out))
    assert "that has not ended" in refused.stderr
    assert sorted(out.rglob("*")) == before
    done = run(site_line(web, out, "processes=2"))
    assert done.returncode == ExitCode.DONE, done.stderr
    ended = inspected(out)
    assert ended["crawl"]["state"] == "finished"
    assert len(pq.read_table(out / "captures.parquet")) == live.update().rows == ended["rows"]


def inspected(out: Path) -> dict[str, Any]:
    """Return what `amicrawl inspect` says of *out*."""
    asked = amicrawl("inspect", "--json", str(out))
    assert asked.returncode == ExitCode.DONE, asked.stderr
    found: dict[str, Any] = json.loads(asked.stdout)
    return found


def amicrawl(*words: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "amicrawl", *words])


def test_a_killed_parent_is_resumed_by_another_number_of_processes(web: Web, tmp_path: Path) -> None:
    out = with_killed_parent(web, tmp_path)
    assert len(web.requested()) < len(web.pages())
    refused = run(site_line(web, out, "processes=2", "fresh=1"))
    assert refused.returncode == ExitCode.USAGE, "a crawl that was killed is there"
    assert "fresh=1 allows none" in refused.stderr
    done = run(site_line(web, out, "processes=3"))
    assert done.returncode == ExitCode.DONE, done.stderr
    assert check_whole(out, runs=2).keys() >= web.pages()
    assert max(web.requested().values()) <= 2, "only what was in flight is requested twice"


def test_a_signal_while_a_killed_crawl_is_put_together_ends_it_and_loses_nothing(
    web: Web, tmp_path: Path
) -> None:
    out, log = with_killed_parent(web, tmp_path), tmp_path / "second"
    requested = web.requested()
    settling = begun(site_line(web, out, "processes=3"), log)
    wait_until(lambda: children_of(settling.pid))
    settling.send_signal(signal.SIGINT)
    assert settling.wait(150) == ExitCode.STOPPED, log.read_text()
    assert "Stopped before the crawl began" in log.read_text()
    assert web.requested() == requested
    done = run(site_line(web, out, "processes=3"))
    assert done.returncode == ExitCode.DONE, done.stderr
    assert check_whole(out, runs=2).keys() >= web.pages()


def test_a_signal_ends_a_crawl_that_waits_for_the_end_of_standard_input(
    web: Web, tmp_path: Path
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    line = command(Path("-"), out, arguments=["processes=2"])
    with log.open("wb") as stream:
        waiting = warm_processes.Popen(
            line, cwd=PROJECT, env=environment(), stderr=stream, stdin=subprocess.PIPE
        )
    assert waiting.stdin is not None
    waiting.stdin.write(f"{web.url(1, 'p0')}\n".encode())
    waiting.stdin.flush()
    wait_until((out / "seeds.stdin").exists)
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(150) == ExitCode.STOPPED, log.read_text()
    waiting.stdin.close()
    assert "Stopped before the crawl began" in log.read_text()
    assert not web.requested()


def test_files_named_after_the_run_are_those_of_the_whole_crawl_and_replace_none(
    web: Web, tmp_path: Path
) -> None:
    web.pause = 0.05
    out = tmp_path / "out"
    line = site_line(web, out, "processes=2", AMICRAWL_WARC_PREFIX="{run}")
    first = run([*line, "-s", "AMICRAWL_STOP_PAGES=20"])
    assert first.returncode == ExitCode.LIMIT, first.stderr
    there = {path.name: path.read_bytes() for path in out.glob("*.warc.gz")}
    assert sorted(there) == ["out-p0-00000.warc.gz", "out-p1-00000.warc.gz"]
    second = run(line)
    assert second.returncode == ExitCode.DONE, second.stderr
    assert there.items() <= {path.name: path.read_bytes() for path in out.glob("*.warc.gz")}.items()
    assert check_whole(out, runs=2).keys() >= web.pages()


def test_what_was_set_aside_of_damage_in_a_process_stays_with_the_whole(
    web: Web, tmp_path: Path
) -> None:
    web.flows.clear()
    out, log = tmp_path / "out", tmp_path / "log"
    parent = begun(site_line(web, out, "processes=2"), log)
    wait_until(lambda: len(list(out.glob("processes/*/*.warc.gz.open"))) == 2)
    wait_until(lambda: len(list(out.glob("processes/*/captures-00000.open"))) == 2)
    children = children_of(parent.pid)
    for pid in (parent.pid, *children):
        os.kill(pid, signal.SIGKILL)
    parent.wait()
    web.flows.set()
    wait_until(lambda: not any(map(is_alive, children)))
    for number in (0, 1):
        child = out / "processes" / str(number)
        with (child / f"ami-p{number}-00000.warc.gz.open").open("ab") as stream:
            stream.write(b"torn")
        with (child / "captures-00000.open").open("ab") as stream:
            stream.write(b"damaged\n")
    done = run(site_line(web, out, "processes=2"))
    assert done.returncode == ExitCode.DONE, done.stderr
    check_whole(out, runs=2)
    tails = [out / f"ami-p{number}-00000.warc.gz.tail" for number in (0, 1)]
    assert all(path.read_bytes().endswith(b"torn") for path in tails)
    journals = [out / f"ami-p{number}-captures-00000.damaged" for number in (0, 1)]
    assert all(path.read_bytes().endswith(b"damaged\n") for path in journals)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_what_one_command_is_putting_together_is_left_alone_by_a_second(
    web: Web, tmp_path: Path, processes: str
) -> None:
    web.flows.clear()
    out, log = tmp_path / "out", tmp_path / "log"
    parent = begun(site_line(web, out, "processes=2"), log)
    plan = out / "processes" / "plan.json"
    wait_until(plan.exists)
    # It ends in order, and is kept from putting all together.
    in_the_way = out / "ami-p1-00000.warc.gz"
    in_the_way.write_bytes(b"")
    web.flows.set()
    assert parent.wait(150) == ExitCode.OUTPUT, log.read_text()
    in_the_way.unlink()
    assert json.loads(plan.read_bytes())["stage"] == "gathering"
    there = sorted(out.rglob("*"))
    with DirectoryLock(out):
        second = run(site_line(web, out, f"processes={processes}"))
    assert second.returncode == ExitCode.USAGE, second.stderr
    assert "Another crawl is writing" in second.stderr
    assert sorted(out.rglob("*")) == there
    done = run(site_line(web, out, f"processes={processes}"))
    assert done.returncode == ExitCode.DONE, done.stderr
    assert check_whole(out, runs=2).keys() >= web.pages()


@pytest.mark.parametrize(
    ("first", "how", "then"),
    [(1, signal.SIGKILL, 2), (3, signal.SIGTERM, 2)],
)
def test_robots_txt_is_requested_once_whatever_ends_a_crawl_and_by_how_many_it_is_resumed(
    web: Web, tmp_path: Path, first: int, how: signal.Signals, then: int
) -> None:
    web.flows.clear()
    out, log = tmp_path / "out", tmp_path / "log"

    def hosts(paths: str) -> list[int]:
        requested = map(_host_and_path, web.server.requests)
        return [host for host, path in requested if path.startswith(paths)]

    crawl = begun(site_line(web, out, f"processes={first}", AMICRAWL_ROBOTS="obey"), log)
    # A page was requested of all hosts then: no robots.txt is in flight.
    wait_until(lambda: len(set(hosts("/p"))) == HOSTS)
    children = children_of(crawl.pid)
    crawl.send_signal(how)
    if how is signal.SIGTERM:
        wait_until(lambda: is_stopping(out, first))
    web.flows.set()
    crawl.wait(60)
    wait_until(lambda: not any(map(is_alive, children)))
    assert len(web.requested()) < len(web.pages())
    done = run(site_line(web, out, f"processes={then}", AMICRAWL_ROBOTS="obey"))
    assert done.returncode == ExitCode.DONE, done.stderr
    assert sorted(hosts("/robots.txt")) == list(range(1, HOSTS + 1))


def test_one_process_crawls_where_several_were_killed_before_they_had_a_plan(
    web: Web, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / "processes" / "0").mkdir(parents=True)
    done = crawl(seeds_of(web, tmp_path), out)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert len(pq.read_table(out / "captures.parquet")) == sum(web.requested().values())


def test_under_nohup_one_interrupt_alone_stops_all_and_one_process_continues(
    web: Web, tmp_path: Path
) -> None:
    web.pause, web.free = 0.05, 3
    web.flows.clear()
    out, log = tmp_path / "out", tmp_path / "log"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        parent = begun(site_line(web, out, "processes=2"), log)
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_until(lambda: len(web.requested()) > 4)
    parent.send_signal(signal.SIGHUP)
    wait_until(lambda: len(web.requested()) > 12)
    parent.send_signal(signal.SIGINT)
    wait_until(lambda: is_stopping(out, 2))
    web.flows.set()
    assert parent.wait(150) == ExitCode.STOPPED, log.read_text()
    check_whole(out)
    assert "run the same command again" in log.read_text()
    done = run(site_line(web, out))
    assert done.returncode == ExitCode.DONE, done.stderr
    assert check_whole(out, runs=2).keys() >= web.pages()


def test_a_log_that_is_begun_anew_has_the_lines_of_all_processes(web: Web, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier crawl\n")
    settings = {"LOG_FILE": str(log), "LOG_FILE_APPEND": "False", "LOG_LEVEL": "INFO"}
    done = crawl(seeds_of(web, tmp_path), tmp_path / "out", arguments=["processes=2"], settings=settings)
    assert done.returncode == ExitCode.DONE, done.stderr
    said = log.read_text()
    assert "of an earlier crawl" not in said
    assert (said.count("Spider opened"), said.count("Spider closed (finished)")) == (2, 2)


def test_the_file_with_the_process_id_names_the_parent_to_the_end(tmp_path: Path) -> None:
    named = tmp_path / "crawl.pid"
    found: list[str] = []

    def respond(_: bytes) -> bytes:
        found.append(named.read_text())
        return page(b"x")

    with RawServer(respond) as server:
        urls = [f"http://127.0.0.{host}:{server.port}/" for host in range(1, 9)]
        seeds = write_lines(tmp_path / "seeds.txt", urls)
        line = command(seeds, tmp_path / "out", arguments=["processes=2"])
        parent = begun([*line, "--pidfile", str(named)], tmp_path / "log")
        assert parent.wait(150) == ExitCode.DONE, (tmp_path / "log").read_text()
    assert {*found, named.read_text()} == {f"{parent.pid}\n"}


def test_on_a_terminal_the_hosts_that_are_waited_for_are_shown_for_all_processes(
    tmp_path: Path,
) -> None:
    names = [f"127.0.0.{number}" for number in range(1, 5)]
    shown, stopped = "", False
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    with RawServer(lambda _: page(b"x")) as server:
        urls = [f"http://{name}:{server.port}/{number}" for number in range(50) for name in names]
        seeds = write_lines(tmp_path / "seeds.txt", urls)
        settings = {"AMICRAWL_DELAY": "60", "AMICRAWL_ADDRESS_DELAY": "0", "AMICRAWL_ROBOTS": "ignore"}
        # Where nothing is shown, the crawl ends nevertheless.
        settings |= {"AMICRAWL_STOP_TIME": "100", "AMICRAWL_LOG_FORMAT": "text"}
        crawling = warm_processes.Popen(
            command(seeds, tmp_path / "out", arguments=["processes=2"], settings=settings),
            cwd=PROJECT,
            env={**environment(), "TERM": "xterm", "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=end,
        )
        os.close(end)
        with contextlib.suppress(OSError):
            # A terminal that no process has open any more gives an error.
            while seen := os.read(terminal, 65536):
                shown += seen.decode("utf-8", "replace")
                if not stopped and all(f"{name} " in shown for name in names):
                    stopped = True
                    crawling.send_signal(signal.SIGINT)
        os.close(terminal)
        assert crawling.wait(100) == ExitCode.STOPPED, shown
    assert stopped, shown
    assert "49 queued  next in" in shown, "the hosts of both, each with why it is waited for"
    assert ": delay" in shown
    assert "{" not in shown, "nothing on a terminal is JSON"


def test_a_limit_counts_over_all_processes(web: Web, tmp_path: Path) -> None:
    web.pause = 0.05
    out = tmp_path / "out"
    line = site_line(web, out, "processes=2")
    done = run([*line, "-s", "AMICRAWL_STOP_PAGES=20", "-s", "AMICRAWL_LOG_FORMAT=text"])
    assert done.returncode == ExitCode.LIMIT, done.stderr
    said = done.stderr.splitlines()
    assert next(line for line in said if "crawling" in line).endswith(f", 2 processes, into {out}")
    assert said[-3].startswith("stopped (limit-pages) after ")
    assert re.fullmatch(r"\d+ URLs? not fetched; to resume, run the same command again", said[-2])
    assert said[-1] == f"output in {out}"
    assert 20 <= len(check_whole(out)) < len(web.pages()) + HOSTS


def test_a_disk_without_the_room_that_was_set_ends_all_processes_by_that_limit(
    web: Web, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(site_line(web, out, "processes=2", AMICRAWL_STOP_FREE=str(1 << 53)))
    assert done.returncode == ExitCode.LIMIT, done.stderr
    assert (out / "crawl.json").exists(), done.stderr
    assert json.loads((out / "crawl.json").read_bytes())["finish_reason"] == "limit-disk"


def test_the_control_files_of_the_crawl_steer_all_processes(web: Web, tmp_path: Path) -> None:
    web.flows.clear()
    out, log = tmp_path / "out", tmp_path / "log"
    (out / "control").mkdir(parents=True)
    (out / "control" / "pause").touch()
    (out / "control" / "concurrency").write_text("6")
    parent = begun(site_line(web, out, "processes=2"), log)

    def statuses() -> list[dict[str, object]]:
        found = out.glob("processes/*/control/status.json")
        return [json.loads(path.read_bytes()) for path in found]

    wait_until(lambda: [each["paused_by"] for each in statuses()] == [["file"], ["file"]])
    assert [each["concurrency"] for each in statuses()] == [3, 3], "each has its part"
    assert not web.requested()
    (out / "control" / "pause").unlink()
    wait_until(web.requested)
    (out / "control" / "stop").touch()
    wait_until(lambda: is_stopping(out, 2))
    web.flows.set()
    assert parent.wait(150) == ExitCode.STOPPED, log.read_text()
    assert json.loads((out / "crawl.json").read_bytes())["finish_reason"] == "stop-file"
    assert sorted(path.name for path in (out / "control").iterdir()) == ["concurrency"]
    assert len(check_whole(out)) < len(web.pages())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["processes=0"], "neither a number from 1 to"),
        (["processes=2", "shards=2"], "does not go with shards"),
    ],
)
def test_what_cannot_be_divided_is_refused(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", ["http://127.0.0.1:9/"])
    done = crawl(seeds, tmp_path / "out", arguments=arguments)
    assert done.returncode == ExitCode.USAGE
    assert sentence in done.stderr
    assert not (tmp_path / "out").exists()


def is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
