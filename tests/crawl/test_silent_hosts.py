"""Hosts that accept and say nothing, at the head of a list, hold no other host up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import warm_processes
from loopback import PROJECT, QUICK, RawServer, command, environment, write_lines

if TYPE_CHECKING:
    from pathlib import Path

SILENT, GOOD = 60, 20


def test_silent_hosts_at_the_head_of_a_list_hold_nobody_up(tmp_path: Path) -> None:
    """Three limits full of them: before it grew by itself, the others waited for their time-outs."""
    never, all_requested = threading.Event(), threading.Event()
    requested: set[bytes] = set()

    def respond(head: bytes) -> bytes:
        if b"GET /silent" in head:
            never.wait(300)
        requested.add(head.partition(b"\r\n")[0])
        if len(requested) == GOOD:
            all_requested.set()
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    with RawServer(respond) as server:
        hosts = [f"http://127.0.1.{number}:{server.port}" for number in range(1, SILENT + GOOD + 1)]
        urls = [f"{host}/{'silent' if n < SILENT else 'good'}-{n}" for n, host in enumerate(hosts)]
        settings = {**QUICK, "AMICRAWL_INFLIGHT_START": "20", "AMICRAWL_INFLIGHT_MIN": "8"}
        crawl = warm_processes.Popen(
            command(write_lines(tmp_path / "seeds.txt", urls), tmp_path / "out", settings=settings),
            cwd=PROJECT,
            env=environment(),
        )
        try:
            assert all_requested.wait(60)
            assert crawl.poll() is None
        finally:
            crawl.kill()
            crawl.wait()
            never.set()
