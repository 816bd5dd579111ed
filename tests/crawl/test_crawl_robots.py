"""robots.txt as a crawl meets it: requested once, kept, heeded, and waited for."""

from __future__ import annotations

import subprocess
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import warm_processes
from archive_reading import rows
from loopback import PROJECT, RawServer, command, crawl, environment, page, write_lines
from scrapy.settings import Settings
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.config import CrawlConfig
from amicrawl.crawl.robots import RobotsMiddleware
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode
from amicrawl.meguri.opening import load
from amicrawl.politeness.robots import parse_robots
from amicrawl.politeness.robots_policy import Access, RobotsVerdict
from amicrawl.urls import Reason, Refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OBEY = {"AMICRAWL_ROBOTS": "obey"}


def path_of(head: bytes) -> str:
    return head.split(b" ")[1].decode()


def serving(robots: Callable[[], bytes]) -> Callable[[bytes], bytes]:
    return lambda head: robots() if path_of(head) == "/robots.txt" else page(b"ok")


def requested(server: RawServer) -> list[str]:
    return [path_of(head) for head in server.requests]


def test_robots_txt_is_requested_once_and_known_in_the_next_crawl(tmp_path: Path) -> None:
    with RawServer(serving(lambda: page(b"User-agent: *\nDisallow: /no\n"))) as server:
        first = write_lines(tmp_path / "a.txt", [f"{server.url}/{n}" for n in range(8)])
        second = write_lines(tmp_path / "b.txt", [f"{server.url}/more", f"{server.url}/no/a"])
        assert crawl(first, tmp_path / "out", settings=OBEY).returncode == ExitCode.DONE
        assert crawl(second, tmp_path / "out", settings=OBEY).returncode == ExitCode.DONE
        assert requested(server).count("/robots.txt") == 1
    denied = [row["error"] for row in rows(tmp_path / "out") if row["error"]]
    assert denied == ["robots-denied: robots.txt disallows it"]


def test_groups_for_one_agent_count_together_and_paths_compare_decoded(tmp_path: Path) -> None:
    robots = b"User-agent: amicrawl\nDisallow: /a\n\nUser-agent: amicrawl\nDisallow: /%62\n"
    with RawServer(serving(lambda: page(robots))) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{name}" for name in "abc"])
        crawl(seeds, tmp_path / "out", settings=OBEY)
        assert set(requested(server)) == {"/robots.txt", "/c"}


def test_where_there_is_none_everything_may_be_requested(tmp_path: Path) -> None:
    with RawServer(serving(lambda: page(b"", status="404 Not Found"))) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a"])
        crawl(seeds, tmp_path / "out", settings=OBEY)
        assert requested(server) == ["/robots.txt", "/a"]


def test_robots_txt_is_a_request_like_any_other_to_its_host(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a", f"{server.url}/b"])
        settings = OBEY | {"AMICRAWL_DELAY": "0.4", "AMICRAWL_PER_HOST": "1"}
        crawl(seeds, tmp_path / "out", settings=settings)
    assert len(server.arrivals) == 3
    assert all(later - earlier > 0.35 for (earlier, _), (later, _) in pairwise(server.arrivals))


def test_a_page_that_robots_txt_forbids_does_not_wait_for_the_turn_behind_it(tmp_path: Path) -> None:
    with RawServer(serving(lambda: page(b"User-agent: *\nDisallow: /"))) as web:
        seeds = write_lines(tmp_path / "s.txt", [f"{web.url}/no"])
        began = time.monotonic()
        done = crawl(seeds, tmp_path / "out", settings={**OBEY, "AMICRAWL_DELAY": "100"})
    assert done.returncode == ExitCode.DONE, done.stderr
    assert [row["error"].partition(":")[0] for row in rows(tmp_path / "out") if not row["status"]] == [
        "robots-denied"
    ]
    assert time.monotonic() - began < 90


def test_a_crawl_delay_is_kept_up_to_the_cap_and_that_is_said(tmp_path: Path) -> None:
    with RawServer(serving(lambda: page(b"User-agent: *\nCrawl-delay: 500\n"))) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a", f"{server.url}/b"])
        done = crawl(seeds, tmp_path / "out", settings=OBEY | {"AMICRAWL_MAX_CRAWL_DELAY": "0.5"})
    first, second = (at for at, head in server.arrivals if path_of(head) != "/robots.txt")
    assert second - first > 0.45
    assert "AMICRAWL_MAX_CRAWL_DELAY" in done.stderr


def test_a_host_whose_robots_txt_fails_is_left_alone_and_its_rows_stay_pending(tmp_path: Path) -> None:
    """The first wait is a minute; a crawl that is stopped before keeps the rows for the next."""
    busy = [page(b"", status="503 Service Unavailable")]
    with RawServer(serving(lambda: busy[0])) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a"])
        settings = {"CLOSESPIDER_TIMEOUT": "4", "LOG_LEVEL": "INFO", "STATS_DUMP": "True"}
        stopped = crawl(seeds, tmp_path / "out", settings=OBEY | settings)
        assert requested(server) == ["/robots.txt"]
        # Its row went back once, and not again and again.
        assert "'amicrawl/robots/waits': 1," in stopped.stderr
        assert "1 URL not fetched" in stopped.stderr
    assert [row["status"] for row in rows(tmp_path / "out")] == [503]


def test_where_nobody_is_there_the_page_says_why(tmp_path: Path) -> None:
    seeds = write_lines(tmp_path / "s.txt", ["http://127.0.0.1:9/a"])
    crawl(seeds, tmp_path / "out", settings=OBEY | {"AMICRAWL_MAX_RETRIES": "0"})
    found = {row["url"]: row["error"].split(":")[0] for row in rows(tmp_path / "out")}
    assert found["http://127.0.0.1:9/a"] == "connection-refused"


class Late(SimpleHTTPRequestHandler):
    """A server that is there only later: it disallows `/no`, and serves everything else."""

    requested: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requested.append(self.path)
        body = b"User-agent: *\nDisallow: /no\n" if self.path == "/robots.txt" else b"ok"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_that_no_server_was_there_permits_nothing_once_somebody_is(tmp_path: Path) -> None:
    Late.requested.clear()
    with RawServer(lambda _: page(b"")) as gone:
        port = int(gone.url.rpartition(":")[2])
    first = write_lines(tmp_path / "a.txt", [f"http://127.0.0.1:{port}/a"])
    crawl(first, tmp_path / "out", settings=OBEY | {"AMICRAWL_MAX_RETRIES": "0"})
    with ThreadingHTTPServer(("127.0.0.1", port), Late) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        second = write_lines(
            tmp_path / "b.txt", [f"http://127.0.0.1:{port}/{name}" for name in ("no", "b")]
        )
        crawl(second, tmp_path / "out", settings=OBEY)
        server.shutdown()
    assert Late.requested == ["/robots.txt", "/b"]


def test_what_a_killed_crawl_learnt_of_robots_txt_is_known_in_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out"
    rules = b"User-agent: *\nDisallow: /private\nCrawl-delay: 0.2\n"

    def respond(head: bytes) -> bytes:
        return page(rules if b"/robots.txt" in head else b"ok")

    with RawServer(respond, pause=0.01) as server:
        urls = [f"http://127.0.0.{1 + n % 5}:{server.port}/{n}" for n in range(200)]
        seeds = write_lines(tmp_path / "seeds.txt", [*urls, f"http://127.0.0.1:{server.port}/private"])
        settings = {"AMICRAWL_ROBOTS": "obey", "AMICRAWL_DELAY": "0.05"}
        # On a busy machine the server is slow, which would lengthen the interval of a host.
        settings["AMICRAWL_LATENCY_FACTOR"] = "0"
        child = warm_processes.Popen(
            command(seeds, out, settings=settings),
            cwd=PROJECT,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while len(server.requests) < 60 and child.poll() is None:
            time.sleep(0.01)
        child.kill()
        child.wait(30)
        requested = sum(b"/robots.txt" in head for head in server.requests)
        assert requested == 5
        explained = load(out / "frontier")
        assert (explained.hosts["crawl_delay"] == 2).all()
        assert (explained.hosts["robots_ref"] > 0).all()
        assert (explained.hosts["robots_expiry"] > explained.hosts["robots_fetched"]).all()
        assert {bytes(address)[-4:-1] for address in explained.hosts["resolved_ip"].tolist()} == {
            bytes([127, 0, 0])
        }
        done = crawl(seeds, out, settings=settings)
        assert done.returncode == 0, done.stderr
        assert sum(b"/robots.txt" in head for head in server.requests) == requested
        assert not [head for head in server.requests if b"/private" in head]
    assert not (out / "frontier" / "robots.jsonl").exists()


def test_explain_tells_what_the_rules_say_from_what_happened_and_when(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(serving(lambda: page(b"User-agent: *\nDisallow: /no"))) as web:
        seeds = write_lines(tmp_path / "s.txt", [f"{web.url}/yes", f"{web.url}/no"])
        assert crawl(seeds, out, settings=OBEY).returncode == ExitCode.DONE

    def explained(*words: str) -> str:
        return CliRunner().invoke(app, [*words]).output

    for path in ("yes", "no"):
        said = explained("frontier", "explain", str(out), f"{web.url}/{path}")
        assert "Its robots.txt was fetched 2" in said
        assert "not recorded" not in said
    denied = explained("explain", f"{web.url}/no", "--dir", str(out))
    assert "now: a link to it is kept out by robots" in denied
    assert "not captured; robots.txt forbade it when its turn came; due from 2" in denied
    unknown = explained("explain", f"{web.url}/unknown", "--dir", str(out))
    assert "not fetched: no link to it was found" in unknown


def test_the_sitemaps_of_an_origin_are_taken_once_however_many_origins_there_are() -> None:
    """It is the origin met longest ago that is forgotten."""
    taken: list[str] = []
    run: Any = SimpleNamespace(
        config=CrawlConfig(),
        on_sitemaps=[lambda _, origin: taken.append(origin)],
        key_of=lambda _: Refused(Reason.NO_HOST),
    )
    crawler: Any = SimpleNamespace(
        settings=Settings({"ROBOTSTXT_OBEY": True, "USER_AGENT": "a"}),
        signals=SimpleNamespace(connect=lambda *_: None),
    )
    middleware = RobotsMiddleware(crawler, run)
    rules = parse_robots(b"Sitemap: http://a.example/s.xml", agent="a")

    def heed(number: int, expires: float) -> None:
        verdict = RobotsVerdict(Access.RULES, expires, rules)
        middleware._heed(f"http://{number}.example/robots.txt", verdict, "")

    for number in range(100_000):
        heed(number, 1.0)
    heed(0, 2.0)
    assert len(taken) == 100_000, "an origin whose rules were requested again is known"
    heed(100_000, 1.0)
    heed(100_000, 2.0)
    heed(0, 3.0)
    assert len(taken) == 100_001
    heed(1, 2.0)
    assert taken[100_000:] == ["http://100000.example/robots.txt", "http://1.example/robots.txt"]


def test_a_robots_txt_that_comes_after_the_end_is_written_into_no_other_file(tmp_path: Path) -> None:
    """A page in a browser that is closed does not wait for the robots.txt of what it needed."""
    (tmp_path / "frontier").mkdir()
    run: Any = SimpleNamespace(config=CrawlConfig(out=str(tmp_path)), status_disk=Disk())
    connected: list[object] = []
    crawler: Any = SimpleNamespace(
        settings=Settings({"ROBOTSTXT_OBEY": True, "USER_AGENT": "a"}),
        signals=SimpleNamespace(connect=lambda act, _: connected.append(act)),
    )
    middleware = RobotsMiddleware(crawler, run)
    verdict = RobotsVerdict(Access.ALLOW_ALL, time.time() + 3600, responded_at=time.time())
    middleware._note("http://a.example/robots.txt", verdict)
    middleware._closed()
    # Files that are opened now get the number of the one that was closed.
    others = [(tmp_path / str(number)).open("wb") for number in range(8)]
    middleware._note("http://b.example/robots.txt", verdict)
    for other in others:
        other.close()
    assert [path.stat().st_size for path in tmp_path.iterdir() if path.is_file()] == [0] * 8
    assert connected == [middleware._closed]
