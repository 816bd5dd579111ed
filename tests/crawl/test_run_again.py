"""A command that is run again: a changed policy takes effect on what it had kept out.

Where nothing is due, a sentence says why and what to type.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
import warm_processes
from archive_reading import rows
from crawl_processes import end
from loopback import (
    PROJECT,
    RawServer,
    command,
    crawl,
    crawl_site,
    environment,
    page,
    recrawl,
    write_lines,
)

from amicrawl.directory_lock import DirectoryLock
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("taken_away", ["while it runs", "afterwards"])
def test_what_a_control_file_kept_out_is_fetched_by_the_crawl_after_it_was_taken_away(
    tmp_path: Path, taken_away: str
) -> None:
    control = tmp_path / "out" / "control"
    pages = ["/hold", *(f"/drop/{n}" for n in range(3)), "/last"]
    links = "".join(f'<a href="{path}">x</a>' for path in pages).encode()

    def ignored() -> list[str] | None:
        status = control / "status.json"
        return json.loads(status.read_text())["ignores"] if status.exists() else None

    def respond(head: bytes) -> bytes:
        path = path_of(head)
        # One request at a time: while this one is held, nothing else is requested.
        if path == "/hold":
            (control / "ignores").write_text("/drop/\n")
            wait_until(lambda: ignored() == ["/drop/"])
        if path == "/last" and taken_away == "while it runs":
            (control / "ignores").unlink()
            wait_until(lambda: ignored() == [])
        return page(links if path == "/" else b"ok", "Content-Type: text/html")

    one = {"AMICRAWL_PER_HOST": "1", "AMICRAWL_TIMEOUT": "60", "AMICRAWL_TIMEOUT_FLOOR": "60"}
    with RawServer(respond) as server:
        crawl_site(f"{server.url}/", tmp_path / "out", settings=one)
        assert fetched(server) == ["/", "/hold", "/last"]
        refused = [row["url"] for row in rows(tmp_path / "out") if row["error"]]
        assert len(refused) == 3
        if taken_away == "afterwards":
            again = crawl_site(f"{server.url}/", tmp_path / "out", settings=one)
            assert fetched(server) == ["/", "/hold", "/last"], again.stderr
            assert [row["url"] for row in rows(tmp_path / "out") if row["error"]] == refused
            (control / "ignores").unlink()
        last = crawl_site(f"{server.url}/", tmp_path / "out", settings=one)
        assert fetched(server)[3:] == pages[1:4], last.stderr
    assert "control/ignores" in last.stderr


FAR = "before=2100-01-01"
NO_PRIVATE = {"AMICRAWL_ALLOW_PRIVATE": ""}


def path_of(head: bytes) -> str:
    return head.split(b" ")[1].decode()


def fetched(server: RawServer) -> list[str]:
    return [path_of(head) for head in server.requests]


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when *condition* holds; fails after a minute."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def frontier(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `amicrawl frontier`."""
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", "frontier", *map(str, arguments)],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def linked(head: bytes) -> bytes:
    """A chain of four pages."""
    number = int(path_of(head).strip("/") or 0)
    link = f'<a href="/{number + 1}">next</a>' if number < 3 else ""
    return page(f"<html>{link}</html>".encode(), "Content-Type: text/html")


def denying(head: bytes) -> bytes:
    if path_of(head) == "/robots.txt":
        return page(b"User-agent: *\nDisallow: /\n", "Content-Type: text/plain")
    return page(b"a page")


def test_urls_that_the_address_guard_kept_out_are_fetched_once_it_lets_them_pass(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"here")) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/{n}" for n in range(3)])
        refused = crawl(seeds, out, settings=NO_PRIVATE)
        assert "3 address-refused" in refused.stderr
        assert not server.requests
        stats = frontier("stats", out).stdout
        assert re.search(r"withheld +3", stats)
        assert "excluded_robots" not in stats
        assert "AMICRAWL_ALLOW_PRIVATE" in frontier("explain", out, f"{server.url}/1").stdout
        again = crawl(seeds, out)
        assert again.returncode == ExitCode.DONE
        assert sorted(fetched(server)) == ["/0", "/1", "/2"]


def test_a_recrawl_without_the_permission_for_private_addresses_ends_nothing_for_ever(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"here")) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/{n}" for n in range(3)])
        crawl(seeds, out)
        recrawl(out, arguments=[FAR], settings=NO_PRIVATE)
        assert re.search(r"withheld +3", frontier("stats", out).stdout)
        before = len(server.requests)
        done = recrawl(out, arguments=[FAR])
        assert len(server.requests) == before + 3, done.stderr
        assert [row["unchanged"] for row in rows(out) if row["status"]] == [False] * 3 + [True] * 3


def test_what_is_kept_out_stays_so_as_long_as_nothing_has_changed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"here")) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/"])
        crawl(seeds, out, settings=NO_PRIVATE)
        again = crawl(seeds, out, settings=NO_PRIVATE)
    assert len(rows(out)) == 1
    assert "1 withheld" in again.stderr
    assert "AMICRAWL_ALLOW_PRIVATE" in again.stderr


def test_urls_that_robots_txt_denied_are_fetched_once_it_is_to_be_ignored(tmp_path: Path) -> None:
    out = tmp_path / "out"
    obey = {"AMICRAWL_ROBOTS": "obey"}
    with RawServer(denying) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/a", f"{server.url}/b"])
        crawl(seeds, out, settings=obey)
        assert fetched(server) == ["/robots.txt"]
        again = crawl(seeds, out, settings=obey)
        assert "2 denied by robots.txt" in again.stderr
        assert "AMICRAWL_ROBOTS" in again.stderr
        crawl(seeds, out)
        assert sorted(fetched(server)) == ["/a", "/b", "/robots.txt"]


def test_a_crawl_limited_in_depth_goes_deeper_when_it_is_run_without_the_limit(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(linked) as server:
        limited = crawl_site(server.url, out, settings={"AMICRAWL_MAX_HOPS": "1"})
        assert limited.returncode == ExitCode.DONE, limited.stderr
        assert sorted(fetched(server)) == ["/", "/1"]
        again = crawl_site(server.url, out)
        assert again.returncode == ExitCode.DONE
        assert sorted(fetched(server)) == ["/", "/1", "/2", "/3"]
        assert "AMICRAWL_MAX_HOPS" in again.stderr


def test_a_finished_crawl_that_is_run_again_says_what_it_knows_and_how_to_request_again(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    with RawServer(linked) as server:
        crawl_site(server.url, out)
        again = crawl_site(server.url, out)
    assert again.returncode == ExitCode.DONE
    assert "nothing to fetch: all 4 URLs known are settled: 4 captured" in again.stderr
    assert f"`amicrawl recrawl {out} --all`" in again.stderr
    assert "retry" not in again.stderr


def test_what_was_let_in_is_not_kept_out_again_by_a_kill(tmp_path: Path) -> None:
    out, may_respond = tmp_path / "out", threading.Event()

    def respond(_: bytes) -> bytes:
        may_respond.wait(60)
        return page(b"here")

    with RawServer(respond) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/{n}" for n in range(3)])
        crawl(seeds, out, settings=NO_PRIVATE)
        process = warm_processes.Popen(command(seeds, out), cwd=PROJECT, env=environment())
        try:
            while not server.requests:
                time.sleep(0.05)
        finally:
            end(process)
        may_respond.set()
        assert crawl(seeds, out).returncode == ExitCode.DONE
    assert sorted(row["url"].rsplit("/", 1)[1] for row in rows(out) if row["status"] == 200) == [
        "0",
        "1",
        "2",
    ]


def test_a_url_without_response_is_requested_again_by_name(tmp_path: Path) -> None:
    out = tmp_path / "out"
    broken = True

    def respond(head: bytes) -> bytes:
        if path_of(head) == "/busy" and broken:
            return page(b"later", status="503 Service Unavailable")
        return page(b"here")

    with RawServer(respond) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/busy", f"{server.url}/fine"])
        first = crawl(seeds, out)
        assert f"amicrawl frontier retry {out}" in first.stderr
        broken = False
        assert crawl(seeds, out).returncode == ExitCode.DONE
        assert fetched(server).count("/busy") == 1
        told = frontier("retry", out)
        assert told.returncode == ExitCode.DONE, told.stderr
        assert "1 URL is due now" in told.stdout
        crawl(seeds, out)
        assert fetched(server).count("/busy") == 2
        assert fetched(server).count("/fine") == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--status", "404"], ["/gone"]),
        (["--status", "crawled"], ["/fine"]),
        (["--host", "localhost"], []),
        (["--host", "127.0.0.1"], ["/busy", "/gone"]),
        (["--status", "gone", "--status", "503"], ["/busy", "/gone"]),
    ],
)
def test_what_is_requested_again_is_chosen_by_status_and_host(
    tmp_path: Path, arguments: list[str], expected: list[str]
) -> None:
    out = tmp_path / "out"
    responses = {
        "/busy": page(b"later", status="503 Service Unavailable"),
        "/gone": page(b"no", status="404 Not Found"),
        "/fine": page(b"here"),
    }
    with RawServer(lambda head: responses[path_of(head)]) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}{path}" for path in responses])
        crawl(seeds, out)
        server.requests.clear()
        told = frontier("retry", out, *arguments)
        assert told.returncode == ExitCode.DONE, told.stderr
        crawl(seeds, out)
        assert sorted(fetched(server)) == expected


def test_nothing_is_requested_again_behind_the_back_of_a_crawl_that_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"here")) as server:
        crawl(write_lines(tmp_path / "seeds.txt", [server.url]), out)
    lock = DirectoryLock(out / "frontier")
    try:
        refused = frontier("retry", out)
    finally:
        lock.release()
    assert refused.returncode == ExitCode.USAGE
    assert "Another crawl is writing" in refused.stderr
    assert frontier("retry", out, "--status", "lost").returncode == ExitCode.USAGE
