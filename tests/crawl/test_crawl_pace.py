"""How hosts that answer slowly, or ask to be left alone, are asked."""

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


class Clocked:
    """An answer, and the moments at which it was asked for."""

    def __init__(self, first: bytes) -> None:
        self._first = first
        self.moments: list[float] = []

    def __call__(self, _: bytes) -> bytes:
        self.moments.append(time.monotonic())
        return self._first if len(self.moments) == 1 else page(b"ok")

    @property
    def pause(self) -> float:
        """Seconds between the first two requests."""
        return self.moments[1] - self.moments[0]


def crawl_two_pages(
    tmp_path: Path, answer: Clocked, settings: dict[str, str], *, pause: float = 0.0
) -> None:
    with RawServer(answer, pause=pause) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a", f"{server.url}/b"])
        crawl(seeds, tmp_path / "out", settings={"AMICRAWL_PER_HOST": "1", **settings})
    assert len(rows(tmp_path / "out")) == 2


def test_retry_after_holds_for_the_very_next_request(tmp_path: Path) -> None:
    answer = Clocked(page(b"", "Retry-After: 2", status="503 Service Unavailable"))
    crawl_two_pages(tmp_path, answer, {"AMICRAWL_RETRY_AFTER_MAX": "60"})
    assert answer.pause > 1.9


def test_a_retry_after_beyond_the_cap_is_cut(tmp_path: Path) -> None:
    answer = Clocked(page(b"", "Retry-After: 999999", status="429 Too Many Requests"))
    crawl_two_pages(tmp_path, answer, {"AMICRAWL_RETRY_AFTER_MAX": "0.7"})
    assert 0.6 < answer.pause < 20


def test_a_host_that_is_busy_is_asked_less_often(tmp_path: Path) -> None:
    answer = Clocked(page(b"", status="503 Service Unavailable"))
    crawl_two_pages(tmp_path, answer, {"AMICRAWL_BACKOFF_MAX": "1.5"})
    assert answer.pause > 1.4


def test_a_slow_host_is_asked_as_slowly_as_it_answers(tmp_path: Path) -> None:
    answer = Clocked(page(b"ok"))
    settings = {"AMICRAWL_DELAY": "0.1", "AMICRAWL_LATENCY_FACTOR": "4"}
    crawl_two_pages(tmp_path, answer, settings, pause=0.4)
    assert answer.pause > 1.4


def test_the_delay_runs_from_the_request_however_long_the_connection_takes(tmp_path: Path) -> None:
    """The first page waits for a slow handshake, the second finds the connection standing."""
    answer = Clocked(page(b"ok"))
    settings = {"AMICRAWL_DELAY": "0.8", "AMICRAWL_LATENCY_FACTOR": "0", "AMICRAWL_TLS": "record"}
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)

    def serve(connection: socket.socket) -> None:
        time.sleep(0.7)
        # The crawl calls again where it does not trust the certificate.
        with suppress(ssl.SSLError), tls.wrap_socket(connection, server_side=True) as channel:
            while request := read_request(channel):
                channel.sendall(answer(request))

    with LoopbackServer(serve) as server:
        pages = [f"https://127.0.0.1:{server.port}/{name}" for name in "ab"]
        seeds = write_lines(tmp_path / "s.txt", pages)
        crawl(seeds, tmp_path / "out", settings={"AMICRAWL_PER_HOST": "1", **settings})
    assert len(rows(tmp_path / "out")) == 2
    assert answer.pause > 0.75
