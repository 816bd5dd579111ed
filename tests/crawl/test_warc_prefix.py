"""WARC files of another name: killed and resumed; and what the files say of who made them."""

from __future__ import annotations

import json
import logging
import platform
import re
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest
import warm_processes
from archive_reading import check_sealed, record, records, rows
from loopback import PROJECT, RawServer, command, crawl, environment, page, write_lines

from amicrawl import __version__
from amicrawl.config import CrawlConfig
from amicrawl.crawl.output import Output, names_nobody
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 60
HELD_FROM = 40
SETTINGS = {
    "AMICRAWL_WARC_PREFIX": "{run}-{time}",
    "AMICRAWL_RUN_ID": "autumn",
    "AMICRAWL_WARC_SIZE": "20000",
    "AMICRAWL_INFLIGHT_MAX": "4",
    "AMICRAWL_PER_HOST": "4",
}
NAME = re.compile(r"autumn-([0-9]{14})-([0-9]{5})\.warc\.gz")


def kill(line: list[str], server: RawServer, files: Path) -> None:
    """Run *line* until it waits for pages that do not come, and has a file that is not full; kill it."""
    child = warm_processes.Popen(
        line, cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None:
        requested = sum(int(head.split(b" ")[1][3:]) >= HELD_FROM for head in server.requests)
        if requested >= 4 and list(files.glob("*.warc.gz.open")):
            break
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait(30)


def test_a_killed_crawl_goes_on_under_another_prefix_and_loses_nothing(tmp_path: Path) -> None:
    come_on = threading.Event()

    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        if int(path[3:]) >= HELD_FROM:
            come_on.wait(60)
        noise = bytes((n * n * int(path[3:]) // 7) % 256 for n in range(1500))
        return page(path.encode() + noise, "Content-Type: text/html")

    out = tmp_path / "out"
    files = out / "autumn"
    with RawServer(respond) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/p/{n}" for n in range(PAGES)])
        settings = {**SETTINGS, "AMICRAWL_ROBOTS": "ignore"}
        kill(command(seeds, out, settings=settings), server, files)
        [torn] = files.glob("*.warc.gz.open")
        with torn.open("ab") as file:
            file.write(b"\x1f\x8b torn")
        come_on.set()
        # The names have the second in which a run begins: the next one is to begin in another.
        killed_at = int(time.time())
        while int(time.time()) == killed_at:
            time.sleep(0.05)
        done = crawl(seeds, out, settings=settings)
    assert done.returncode == 0, done.stderr
    assert len(rows(files)) == PAGES
    assert {row["url"] for row in rows(files)} == {f"{server.url}/p/{n}" for n in range(PAGES)}
    named = {path.name: NAME.fullmatch(path.name) for path in files.glob("*.warc.gz")}
    found = sorted((match[2], match[1]) for match in named.values() if match is not None)
    assert len(found) == len(named)
    assert len({number for number, _ in found}) == len(found), "no number comes twice"
    assert len({moment for _, moment in found}) == 2
    assert (files / torn.name.replace(".open", ".tail")).read_bytes().endswith(b"\x1f\x8b torn")
    assert not list(files.glob("*.open"))
    for row in rows(files):
        path = str(row["url"]).removeprefix(server.url).encode()
        assert path in record(files, row)[1]
    for sealed in files.glob("*.warc.gz"):
        check_sealed(sealed)
    said = json.loads((files / "crawl.json").read_text())
    assert {entry["name"] for entry in said["files"]} >= named.keys()
    infos = [one.raw_stream.read().decode() for one in records(files) if one.rec_type == "warcinfo"]
    assert len(infos) == len(named)
    for info in infos:
        fields = dict(line.split(": ", 1) for line in info.splitlines())
        assert fields["hostname"] == platform.node()
        assert fields["http-header-user-agent"].startswith(f"amicrawl/{__version__}")
        assert fields["isPartOf"] == "autumn"
        assert fields["AMICRAWL_WARC_PREFIX"] == "{run}-{time}"


def test_a_prefix_that_cannot_be_a_name_ends_the_crawl_before_it_begins(tmp_path: Path) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", [])
    done = crawl(seeds, tmp_path / "out", settings={"AMICRAWL_WARC_PREFIX": "a/b"})
    assert done.returncode == 2
    assert "AMICRAWL_WARC_PREFIX is 'a/b'" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "agent", "nobody"),
    [
        ({}, "amicrawl/1", True),
        ({"allow_private": "10.0.0.0/8,fd00::/8"}, "amicrawl/1", True),
        ({"operator": "Ann, ann@example.org"}, "amicrawl/1", False),
        ({}, "Bot/1 (+https://example.org/bot)", False),
        ({"allow_private": "127.0.0.1"}, "amicrawl/1", False),
        ({"allow_private": "10.0.0.0/8,::1"}, "amicrawl/1", False),
    ],
)
def test_a_crawl_among_strangers_that_names_nobody_is_told_from_a_trial(
    settings: dict[str, str], agent: str, nobody: bool
) -> None:
    assert names_nobody(CrawlConfig(**settings), agent) is nobody


def test_that_nobody_is_named_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Output(CrawlConfig(out=tmp_path), asked={}, user_agent="amicrawl/1").archive.close()
    assert [entry.getMessage() for entry in caplog.records] == [
        (
            "Requests do not name who crawls: set AMICRAWL_OPERATOR (--operator) to your URL or "
            "e-mail address."
        )
    ]


def test_a_prefix_too_long_for_a_name_leaves_no_directory(tmp_path: Path) -> None:
    config = CrawlConfig(out=tmp_path / ("d" * 120), warc_prefix="p" * 80 + "{run}")
    with pytest.raises(UsageError, match="choose a shorter one"):
        Output(config, asked={})
    assert list(tmp_path.iterdir()) == []
