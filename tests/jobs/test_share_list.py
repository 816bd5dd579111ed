"""A seed list shared by two workers: each line fetched once, redirects followed to other partitions."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from typing import TYPE_CHECKING

import warm_processes
from archive_reading import rows
from crawl_processes import end
from loopback import PROJECT, QUICK, RawServer, environment, page

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from redis_server import RedisServer

HOSTS = 24


def address(number: int) -> str:
    return f"127.0.1.{1 + number % HOSTS}"


def respond(head: bytes) -> bytes:
    """A page with a link that nobody shall follow; `/go` leads to the next host."""
    path = head.split(b" ")[1]
    named = re.search(rb"\r\nhost: *([\d.]+):(\d+)", head, re.IGNORECASE)
    assert named is not None
    host, port = named.groups()
    if path == b"/go":
        number = int(host.rpartition(b".")[2])
        target = f"http://{address(number)}:{port.decode()}/target"
        return page(b"", f"Location: {target}", status="302 Found")
    return page(b'<a href="/never">x</a>', "Content-Type: text/html")


def command(server: RedisServer, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "amicrawl", "share", *arguments]
    with log.open("ab") as output:
        return warm_processes.Popen(
            line,
            cwd=PROJECT,
            env=environment() | {"REDIS_URL": server.url},
            stdout=output,
            stderr=output,
        )


def test_a_list_is_fetched_by_two_workers_and_its_redirects_travel(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    settings = [part for pair in QUICK.items() for part in ("-s", "=".join(pair))]
    with RawServer(respond) as web, contextlib.ExitStack() as started:
        listed = [
            {"url": f"http://{address(number)}:{web.port}{path}", "line": number}
            for number in range(HOSTS)
            for path in ("/go", "/page", "/page#part", "/page")
        ]
        seeds = tmp_path / "seeds.jsonl"
        seeds.write_text("".join(json.dumps(one) + "\n" for one in listed))
        made = command(
            redis_server, log, "create", "one", "--list", "--seeds", str(seeds), "--partitions", "4"
        )
        assert made.wait(120) == 0, log.read_text()
        workers = [
            command(
                redis_server,
                log,
                "work",
                "one",
                "--data",
                str(tmp_path / name),
                "--slots",
                "2",
                *settings,
            )
            for name in ("a", "b")
        ]
        for worker in workers:
            started.callback(end, worker)
        for worker in workers:
            assert worker.wait(170) == 0, log.read_text()
    found = [row for path in tmp_path.glob("?/one/part-*") for row in rows(path)]
    urls = [row["url"] for row in found]
    paths = ("/go", "/page", "/target")
    wanted = {f"http://{address(n)}:{web.port}{path}" for n in range(HOSTS) for path in paths}
    assert {url.partition("#")[0] for url in urls} == wanted
    assert len(urls) == len(set(urls)), "each line once"
    assert not any(b"/never" in head.split(b"\r\n")[0] for head in web.requests)
    by_url = {row["url"]: row for row in found}
    start, target = f"http://{address(3)}:{web.port}/go", f"http://{address(4)}:{web.port}/target"
    assert by_url[start]["status"] == 302
    assert json.loads(by_url[target]["meta_json"]) == json.loads(by_url[start]["meta_json"])
    assert len({path.parent.parent for path in tmp_path.glob("?/one/part-*")}) == 2
