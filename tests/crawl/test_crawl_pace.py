"""How hosts that respond slowly, or want no requests for a while, are contacted."""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import trustme
from archive_reading import rows
from loopback import RawServer, crawl, page, write_lines
from odd_responses import LoopbackServer, read_request

if TYPE_CHECKING:
    import socket
    from pathlib import Path


def pause_behind(first: bytes, tmp_path: Path, settings: dict[str, str], *, takes: float = 0.0) -> float:
    """Crawl two pages that take so long; return the seconds from the request for *first* to the next."""
    responses = [first]
    with RawServer(lambda _: responses.pop() if responses else page(b"ok"), pause=takes) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a", f"{server.url}/b"])
        crawl(seeds, tmp_path / "out", settings={"AMICRAWL_PER_HOST": "1", **settings})
    assert len(rows(tmp_path / "out")) == 2
    (earlier, _), (later, _), *_ = server.arrivals
    return later - earlier


def test_retry_after_holds_for_the_very_next_request(tmp_path: Path) -> None:
    first = page(b"", "Retry-After: 2", status="503 Service Unavailable")
    assert pause_behind(first, tmp_path, {"AMICRAWL_RETRY_AFTER_MAX": "60"}) > 1.9


def test_a_retry_after_beyond_the_cap_is_cut(tmp_path: Path) -> None:
    first = page(b"", "Retry-After: 999999", status="429 Too Many Requests")
    assert 0.6 < pause_behind(first, tmp_path, {"AMICRAWL_RETRY_AFTER_MAX": "0.7"}) < 60


def test_a_host_that_is_busy_is_contacted_less_often(tmp_path: Path) -> None:
    first = page(b"", status="503 Service Unavailable")
    assert pause_behind(first, tmp_path, {"AMICRAWL_BACKOFF_MAX": "1.5"}) > 1.4


def test_a_slow_host_is_contacted_as_slowly_as_it_responds(tmp_path: Path) -> None:
    settings = {"AMICRAWL_DELAY": "0.1", "AMICRAWL_LATENCY_FACTOR": "4"}
    assert pause_behind(page(b"ok"), tmp_path, settings, takes=0.4) > 1.4


def test_the_delay_runs_from_the_request_however_long_the_connection_takes(tmp_path: Path) -> None:
    """The first page waits for a slow handshake, the second finds the connection standing."""
    settings = {"AMICRAWL_DELAY": "0.8", "AMICRAWL_LATENCY_FACTOR": "0", "AMICRAWL_TLS": "record"}
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)

    def serve(connection: socket.socket) -> None:
        time.sleep(0.7)
        # The crawl calls again where it does not trust the certificate.
        with suppress(ssl.SSLError), tls.wrap_socket(connection, server_side=True) as channel:
            while read_request(channel):
                channel.sendall(page(b"ok"))

    with LoopbackServer(serve) as server:
        pages = [f"https://127.0.0.1:{server.port}/{name}" for name in "ab"]
        seeds = write_lines(tmp_path / "s.txt", pages)
        crawl(seeds, tmp_path / "out", settings={"AMICRAWL_PER_HOST": "1", **settings})
    # When the crawl sent its requests, in ms: this process reads them when it has its turn.
    first, second = sorted(row["fetched_at"] - row["duration_ms"] for row in rows(tmp_path / "out"))
    assert second - first > 700, "from the connection it would be 100"
