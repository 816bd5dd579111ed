"""The metrics endpoint: what it tells of a real crawl, and what it does to malformed requests."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from crawl_watching import RunningCrawl
from loopback import RawServer, crawl, page, write_lines

from amicrawl.config import CrawlConfig
from amicrawl.crawl.watching.metrics import METRICS
from amicrawl.errors import ExitCode, UsageError
from amicrawl.socket_address import socket_address

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAMPLE = re.compile(
    r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)+)\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)'
)
"""A line of the text format 0.0.4, written from its description and not from our code."""


def read(exposed: str) -> dict[str, float]:
    """Return the samples by name and labels, checking each line; raises AssertionError."""
    found: dict[str, float] = {}
    typed: set[str] = set()
    assert exposed.endswith("\n")
    for line in exposed.splitlines():
        if line.startswith("# "):
            if line.startswith("# TYPE "):
                typed.add(line.split()[2])
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        assert name in typed or re.sub("_(bucket|sum|count)$", "", name) in typed, line
        key = f"{name}{{{labels}}}" if labels else name
        assert key not in found, line
        found[key] = float(value)
    return found


def send(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(request)
        response = b""
        while block := connection.recv(65536):
            response += block
        return response


def get(port: int, path: str = "/metrics") -> tuple[str, str]:
    head, _, body = send(port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).partition(
        b"\r\n\r\n"
    )
    return head.decode(), body.decode()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningCrawl]:
    with (
        RawServer(lambda _: page(b"x" * 100)) as server,
        RunningCrawl(
            server, tmp_path, urls=400, settings={"AMICRAWL_METRICS": "localhost:0"}
        ) as crawling,
    ):
        yield crawling


def test_a_running_crawl_is_measured_and_bears_malformed_requests(running: RunningCrawl) -> None:
    running.wait_until(lambda: running.status().get("metrics"))
    url: str = running.status()["metrics"]
    port = int(url.removeprefix("http://127.0.0.1:").removesuffix("/metrics"))
    running.wait_until(lambda: read(get(port)[1]).get('amicrawl_fetches_total{class="ok"}', 0) >= 3)

    head, body = get(port)
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert f"Content-Length: {len(body)}" in head
    told = read(body)
    ok = told['amicrawl_fetches_total{class="ok"}']
    assert told["amicrawl_received_bytes_total"] == ok * len(page(b"x" * 100))
    assert told["amicrawl_fetch_duration_seconds_count"] == ok
    assert told['amicrawl_urls{state="crawled"}'] == ok
    assert told["amicrawl_queued"] + told["amicrawl_in_flight"] + ok == 400
    assert told['amicrawl_paused{reason="file"}'] == told["amicrawl_stopping"] == 0
    assert told["amicrawl_inflight_limit"] >= 32
    assert 1e9 < told["process_start_time_seconds"] < 1e10
    assert told["process_resident_memory_bytes"] > 1e7
    named = {re.sub(r"(_bucket|_sum|_count)?(\{.*)?$", "", name) for name in told}
    ours = {name for name in named if not name.startswith("process_")}
    assert ours == {metric.name for metric in METRICS}, "what is listed is exposed"

    assert get(port, "/healthz")[1] == "running\n"
    assert get(port, "/../etc/passwd")[0].startswith("HTTP/1.1 404 ")
    head_only = send(port, b"HEAD /metrics?x HTTP/1.0\r\n\r\n")
    assert head_only.startswith(b"HTTP/1.1 200 OK\r\n")
    assert head_only.endswith(b"\r\n\r\n")
    assert send(port, b"POST /metrics HTTP/1.1\r\nHost: [::1]:1\r\n\r\n").startswith(b"HTTP/1.1 405 ")

    for host in (b"[::1]", b"127.0.0.1", b"LOCALHOST:80"):
        loopback = send(port, b"HEAD /metrics HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
        assert loopback.startswith(b"HTTP/1.1 200 "), host

    # A page in a browser whose name was rebound to this address gets nothing.
    rebound = send(port, b"GET /metrics HTTP/1.1\r\nHost: evil.example:80\r\n\r\n")
    assert rebound.startswith(b"HTTP/1.1 421 ")
    assert b"amicrawl_" not in rebound

    # Who opens connections and says nothing, or never stops talking, keeps no other client from its
    # response.
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
    with pytest.raises(OSError, match=r"reset|pipe"):
        send(port, b"GET /" + b"x" * 50_000_000)
    assert read(get(port)[1])
    for connection in silent:
        connection.close()

    running.process.send_signal(signal.SIGUSR1)
    running.wait_until(lambda: get(port, "/healthz")[1] == "paused\n")
    assert read(get(port)[1])['amicrawl_paused{reason="signal"}'] == 1
    running.process.send_signal(signal.SIGINT)
    assert running.ended() == ExitCode.STOPPED, running.stderr
    assert "Traceback" not in running.stderr
    assert not list(running.out.glob("*.open"))


def test_a_crawl_of_a_list_that_is_cut_is_healthy_while_it_runs(tmp_path: Path) -> None:
    """A probe would end it, again and again, before it has what is left of the list."""
    settings = {"AMICRAWL_METRICS": "localhost:0"}
    with (
        RawServer(lambda _: page(b"x")) as server,
        RunningCrawl(server, tmp_path, urls=2000, settings=settings, is_cut=True) as running,
    ):
        running.wait_until(lambda: "it ends inside its gzip data" in running.stderr)
        running.wait_until(lambda: running.status().get("metrics"))
        port = int(running.status()["metrics"].removesuffix("/metrics").rpartition(":")[2])
        before = len(server.arrivals)
        running.wait_until(lambda: len(server.arrivals) > before + 3)
        head, body = get(port, "/healthz")
        assert (head.split()[1], body) == ("200", "running\n")
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == ExitCode.INPUT, running.stderr


def test_a_port_that_is_taken_is_a_sentence_before_anything_is_fetched(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        taken = f"127.0.0.1:{server.port}"
        done = crawl(
            write_lines(tmp_path / "s.txt", [server.url]),
            tmp_path / "out",
            settings={"AMICRAWL_METRICS": taken},
        )
        assert not server.requests
    assert done.returncode == ExitCode.USAGE
    assert f"Metrics cannot be served on 127.0.0.1 port {server.port}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("127.0.0.1:9410", ("127.0.0.1", 9410)),
        ("localhost:0", ("127.0.0.1", 0)),
        ("[::1]:9410", ("::1", 9410)),
        ("0.0.0.0:9410", ("0.0.0.0", 9410)),
    ],
)
def test_addresses_are_read_as_written(written: str, read_as: tuple[str, int]) -> None:
    assert socket_address(written) == read_as


@pytest.mark.parametrize(
    "written",
    [
        "9410",
        ":9410",
        "*:9410",
        "crawler.example:9410",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "::1",
        "[::1:80",
    ],
)
def test_an_address_that_is_not_spelt_out_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:9410"):
        CrawlConfig.from_settings({"AMICRAWL_METRICS": written})


@pytest.mark.parametrize(("host", "is_warned_of"), [("127.0.0.2", False), ("0.0.0.0", True)])
def test_an_address_that_others_reach_is_warned_of(
    tmp_path: Path, host: str, *, is_warned_of: bool
) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        done = crawl(
            write_lines(tmp_path / "s.txt", [server.url]),
            tmp_path / "out",
            settings={"AMICRAWL_METRICS": f"{host}:0"},
        )
    assert done.returncode == ExitCode.DONE
    assert ("where others than this machine may read them" in done.stderr) == is_warned_of


def test_every_metric_is_documented() -> None:
    lines = (Path(__file__).parents[2] / "docs" / "watching.md").read_text().splitlines()
    told = [tuple(cell.strip(" `") for cell in line.strip("|").split("|")) for line in lines]
    rows = [row for row in told if len(row) == 3 and row[0].startswith("amicrawl_")]
    assert rows == [(metric.name, metric.kind, metric.meaning) for metric in METRICS]
