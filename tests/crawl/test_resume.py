"""Resuming: a crawl goes on where the last one into its directory ended."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import warm_processes
from archive_reading import check_sealed, record, rows
from loopback import (
    PROJECT,
    RawServer,
    command,
    crawl,
    crawl_site,
    environment,
    page,
    site_command,
    write_lines,
)

from amicrawl.config import Identity
from amicrawl.errors import ExitCode
from amicrawl.urls import shard_of, url_key

if TYPE_CHECKING:
    from pathlib import Path

ONE_BY_ONE = {"AMICRAWL_PER_HOST": "1", "AMICRAWL_DELAY": "0.05"}


def resumed(stderr: str) -> dict[str, int]:
    """What a crawl said about what it found."""
    for line in stderr.splitlines():
        if line.startswith("{") and json.loads(line).get("event") == "resumed":
            found: dict[str, int] = json.loads(line)
            return found
    raise AssertionError(stderr)


def paths(out: Path) -> list[str]:
    return sorted("/" + row["url"].split("/", 3)[3] for row in rows(out))


def test_a_finished_crawl_has_nothing_left_to_do(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(5)])
        assert "resumed" not in crawl(seeds, tmp_path / "out").stderr
        requested = len(server.requests)
        done = crawl(seeds, tmp_path / "out")
        assert len(server.requests) == requested
    assert done.returncode == ExitCode.DONE
    found = resumed(done.stderr)
    assert (found["done"], found["in_flight"], found["pending"]) == (5, 0, 0)
    assert len(rows(tmp_path / "out")) == 5


def test_new_seeds_of_a_second_crawl_are_fetched_and_the_known_ones_are_not(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        crawl(write_lines(tmp_path / "a.txt", [f"{server.url}/{n}" for n in range(3)]), tmp_path / "out")
        crawl(write_lines(tmp_path / "b.txt", [f"{server.url}/{n}" for n in range(5)]), tmp_path / "out")
    assert paths(tmp_path / "out") == ["/0", "/1", "/2", "/3", "/4"]


def test_a_stopped_crawl_goes_on_without_its_seed_list(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(60)])
        child = _start(command(seeds, out, settings=ONE_BY_ONE))
        while len(server.requests) < 10:
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        assert child.wait(90) == ExitCode.STOPPED
        done = crawl(write_lines(tmp_path / "one.txt", [f"{server.url}/0"]), out)
        requested = len(server.requests)
    assert done.returncode == ExitCode.DONE, done.stderr
    found = resumed(done.stderr)
    assert found["done"] + found["pending"] == 60
    assert found["in_flight"] == 0
    assert requested == 60
    assert len(set(paths(out))) == 60


def test_after_a_kill_only_what_was_in_flight_is_requested_twice(tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = {"AMICRAWL_INFLIGHT_MAX": "4", "AMICRAWL_PER_HOST": "4", "AMICRAWL_DURABILITY": "none"}
    with RawServer(lambda _: page(b"ok"), pause=0.02) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(300)])
        child = _start(command(seeds, out, settings=settings))
        while len(server.requests) < 100:
            time.sleep(0.01)
        child.kill()
        child.wait(30)
        before = len(server.requests)
        done = crawl(seeds, out, settings=settings)
        requested = len(server.requests)
    assert done.returncode == ExitCode.DONE, done.stderr
    found = resumed(done.stderr)
    assert found["done"] + found["pending"] == 300
    assert before - 10 <= found["done"] <= before
    assert len(set(paths(out))) == 300
    assert len(rows(out)) <= 304
    assert requested <= 308
    for file in out.glob("*.warc.gz"):
        check_sealed(file)


def test_a_revisit_that_the_frontier_did_not_know_is_not_fetched_again_and_its_links_are(
    tmp_path: Path,
) -> None:
    """Its payload is that of another page, and its links are relative to its own URL."""
    out, events = tmp_path / "out", {"/y/": threading.Event(), "/y/sub": threading.Event()}

    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        if path in events:
            events[path].wait(60)
        body = {"/": b'<a href="/x/">x</a> <a href="/y/">y</a>'}.get(path, b'<a href="sub">sub</a>')
        return page(path.encode() if "sub" in path else body, "Content-Type: text/html")

    with RawServer(respond) as server:

        def wait_for(*paths: str) -> None:
            while not {*paths} <= {head.split(b" ")[1].decode() for head in server.requests}:
                time.sleep(0.02)

        child = _start(site_command(server.url + "/", out))
        wait_for("/x/sub", "/y/")
        time.sleep(1.5)  # so long a change waits for the journal at most
        shutil.copytree(out / "frontier", tmp_path / "before")
        events["/y/"].set()
        wait_for("/y/sub")
        child.kill()
        child.wait(30)
        shutil.rmtree(out / "frontier")
        shutil.copytree(tmp_path / "before", out / "frontier")
        events["/y/sub"].set()
        server.requests.clear()
        done = crawl_site(server.url + "/", out)
        assert done.returncode == ExitCode.DONE, done.stderr
        requested = [head.split(b" ")[1] for head in server.requests]
    assert requested == [b"/y/sub"]
    assert next(row for row in rows(out) if row["url"].endswith("/y/"))["original_url"].endswith("/x/")


def test_a_page_whose_record_is_lost_is_fetched_whole_and_stored_whole(tmp_path: Path) -> None:
    """As after a power cut, or on a machine that has the frontier of another and not its files."""
    out = tmp_path / "out"

    def respond(head: bytes) -> bytes:
        if b"If-None-Match" in head:
            return b'HTTP/1.1 304 Not Modified\r\nETag: "one"\r\n\r\n'
        return page(b"of " + head.split(b" ")[1], 'ETag: "one"', "Content-Type: text/plain")

    with RawServer(respond, pause=0.02) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(40)])
        child = _start(command(seeds, out, settings=ONE_BY_ONE))
        while len(server.requests) < 20:
            time.sleep(0.01)
        child.kill()
        child.wait(30)
        for file in [*out.glob("*.warc.gz*"), *out.glob("captures*")]:
            file.unlink()
        done = crawl(seeds, out)
    assert done.returncode == ExitCode.DONE, done.stderr
    found = rows(out)
    assert len(found) == 40
    assert {(row["status"], row["unchanged"]) for row in found} == {(200, False)}
    for row in found:
        head, body = record(out, row)
        assert head["WARC-Type"] == "response"
        assert body.endswith(b"of /" + row["url"].rpartition("/")[2].encode())


def test_a_killed_shard_leaves_the_hosts_of_others_to_them_when_it_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    hosts = [f"127.0.0.{number}" for number in range(1, 13)]

    def respond(request: bytes) -> bytes:
        # Every page of every host sends on to the same page of all others, one after the other.
        head = request.split(b"\r\n", 1)[0].split()[1].decode()
        number = int(head.rsplit("/", 1)[1])
        target = f"http://{hosts[number % 12]}:{server.port}/from/{number}" if "from" not in head else ""
        if not target:
            return page(b"ok")
        return f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()

    with RawServer(respond, pause=0.02) as server:
        mine = [
            host for host in hosts if shard_of(url_key(f"http://{host}/", Identity.EXACT).host, 2) == 0
        ]
        assert 0 < len(mine) < 12
        urls = [f"http://{mine[n % len(mine)]}:{server.port}/{n}" for n in range(200)]
        seeds = write_lines(tmp_path / "s.txt", urls)
        child = _start([*command(seeds, out), "-a", "shard=0", "-a", "shards=2"])
        while len(server.requests) < 60:
            time.sleep(0.01)
        child.kill()
        child.wait(30)
        done = crawl(seeds, out, arguments=["shard=0", "shards=2"])
    assert done.returncode == ExitCode.DONE, done.stderr
    assert {row["url"].split("/")[2].split(":")[0] for row in rows(out)} == set(mine)


def test_a_frontier_that_is_lost_is_not_made_up_for_in_silence(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(5)])
        crawl(seeds, out)
        for file in (out / "frontier").glob("snap-*.meguri"):
            file.write_bytes(b"MEG1 and nothing more")
        done = crawl(seeds, out)
    assert done.returncode == ExitCode.DAMAGED
    assert "snap-" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_snapshot_is_made_up_for_by_the_one_before_and_that_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(5)])
        crawl(seeds, out)
        newest = max((out / "frontier").glob("snap-*.meguri"), key=lambda path: path.name)
        spoiled = bytearray(newest.read_bytes())
        spoiled[200] ^= 1
        newest.write_bytes(spoiled)
        requested = len(server.requests)
        done = crawl(seeds, out)
        assert len(server.requests) == requested
    assert done.returncode == ExitCode.DONE, done.stderr
    assert newest.name in done.stderr
    assert resumed(done.stderr)["done"] == 5


def test_a_fresh_crawl_refuses_a_directory_that_holds_one(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a"])
        assert crawl(seeds, tmp_path / "out", arguments=["fresh=1"]).returncode == ExitCode.DONE
        before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
        done = crawl(seeds, tmp_path / "out", arguments=["fresh=1"])
    assert done.returncode == ExitCode.USAGE
    assert "fresh=1" in done.stderr
    assert {
        path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()
    } == before


def test_a_frontier_of_another_identity_is_refused(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a"])
        crawl(seeds, tmp_path / "out")
        done = crawl(seeds, tmp_path / "out", settings={"AMICRAWL_IDENTITY": "canonical"})
    assert done.returncode == ExitCode.USAGE
    assert "was made with AMICRAWL_IDENTITY = exact, and this crawl has canonical" in done.stderr
    assert "go on there with -s AMICRAWL_IDENTITY=exact." in done.stderr


def _start(line: list[str]) -> subprocess.Popen[bytes]:
    return warm_processes.Popen(
        line, cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
