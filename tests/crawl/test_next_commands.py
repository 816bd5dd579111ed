"""What a crawl prints to be typed next does what it says; where its URLs stand is said as it is."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING

import warm_processes
from loopback import QUICK, RawServer, environment, page

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

LINKS = b'<a href="/a">a</a> <a href="/missing">m</a> <a href="/busy">b</a> <a href="/no/x">x</a>'


def respond(head: bytes) -> bytes:
    path = head.split(b" ")[1]
    if path == b"/robots.txt":
        return page(b"User-agent: *\nDisallow: /no/\n")
    if path == b"/missing":
        return page(b"none", status="404 Not Found")
    if path == b"/busy":
        return page(b"busy", status="503 Service Unavailable")
    return page(LINKS if path == b"/" else b"a page", "Content-Type: text/html")


def amicrawl(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    settings = [word for name, value in QUICK.items() for word in ("-s", f"{name}={value}")]
    line = [sys.executable, "-m", "amicrawl", *words]
    line += settings if words[0] in {"crawl", "recrawl"} else []
    return warm_processes.run(
        line, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )


def paths(server: RawServer) -> list[str]:
    requested = [head.split(b" ")[1].decode() for head in server.requests]
    return sorted(set(requested) - {"/robots.txt"})


def test_each_command_that_a_crawl_prints_does_what_is_said(tmp_path: Path) -> None:
    with RawServer(respond) as server:
        first = amicrawl("crawl", server.url + "/", "-o", "out", cwd=tmp_path)
        assert first.returncode == ExitCode.DONE, first.stderr
        server.requests.clear()
        again = amicrawl("crawl", server.url + "/", "-o", "out", cwd=tmp_path)
        assert paths(server) == []
        printed = re.findall(r"`amicrawl ([^`]+)`", first.stderr + again.stderr)
        assert {line.split()[0] for line in printed} == {"recrawl", "frontier"}
        for line in dict.fromkeys(printed):
            server.requests.clear()
            done = amicrawl(*shlex.split(line), cwd=tmp_path)
            assert done.returncode == ExitCode.DONE, (line, done.stderr)
            if line.startswith("recrawl"):
                assert {"/", "/a", "/missing"} <= set(paths(server)), line
            if line.startswith("frontier retry"):
                amicrawl("crawl", server.url + "/", "-o", "out", cwd=tmp_path)
                assert "/busy" in paths(server), line
        explained = amicrawl("explain", server.url + "/missing", "--dir", "out", cwd=tmp_path).stdout
    assert re.search(
        r"captured 20\d\d-\d\d-\d\d \d\d:00-\d\d:00 UTC; the last response had the status 404", explained
    )


def test_a_second_site_joins_no_archive_by_itself(tmp_path: Path) -> None:
    with RawServer(respond) as server:
        start = f"{server.url}/a"
        assert amicrawl("crawl", start, cwd=tmp_path).returncode == ExitCode.DONE
        requested = len(server.requests)
        other = amicrawl("crawl", f"{server.url}/missing", cwd=tmp_path)
        assert (other.returncode, len(server.requests)) == (ExitCode.USAGE, requested)
        assert f"ami-out has a crawl of {start}." in other.stderr
        assert "-o ami-out" in other.stderr
        for words in ((f"{server.url}/missing", "-o", "ami-out"), (start,)):
            assert amicrawl("crawl", *words, cwd=tmp_path).returncode == ExitCode.DONE
