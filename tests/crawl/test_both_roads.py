"""Rows are visited directly or by Scrapy's engine; what is archived is the same."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import warm_processes
from archive_reading import read_block, records, rows
from loopback import PROJECT, RawServer, command, crawl, crawl_site, environment, page, write_jsonl

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HTML = "Content-Type: text/html"
OF_ONE_CRAWL = {
    "WARC-Record-ID",
    "WARC-Date",
    "WARC-Concurrent-To",
    "WARC-Refers-To",
    "WARC-Refers-To-Date",
}
OF_ONE_ROW = {"fetched_at", "warc_offset", "warc_length", "record_id", "ttfb_ms", "duration_ms"}


def held(out: Path) -> Counter[Any]:
    """Return the records in *out* and the rows of its index, dates and ids apart."""
    found: Counter[Any] = Counter()
    for record in records(out):
        if record.rec_type == "warcinfo":
            continue
        fields = [f for f in record.rec_headers.headers if f[0] not in OF_ONE_CRAWL]
        found["record", tuple(fields), read_block(record)] += 1
    for row in rows(out):
        # What follows the failure's own word may say how long it took.
        row["error"] = row["error"].partition(":")[0]
        found["row", *((name, row[name]) for name in row if name not in OF_ONE_ROW)] += 1
    return found


def responses(server: Callable[[], RawServer]) -> Callable[[bytes], bytes]:
    """Return the responses of a site with most of what the web has."""

    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        if path == "/robots.txt":
            return page(b"", "Location: /the/rules", status="301 Moved")
        if path == "/the/rules":
            return page(b"User-agent: *\nDisallow: /private", "Cache-Control: max-age=86400")
        if path.startswith("/moved/"):
            left = int(path.rpartition("/")[2])
            target = f"/moved/{left - 1}" if left else "/landed"
            return page(b"", f"Location: {target}", status="302 Found")
        known = {
            "/": page(
                b'<a href="/linked">l</a><a href="/private/x">p</a><a href="/moved/2">m</a><img src=i>',
                HTML,
            ),
            "/linked": page(b'<a href="/">home</a><a href="/gone">g</a>', HTML),
            "/gone": page(b"gone", status="410 Gone"),
            "/busy": page(b"busy", "Retry-After: 1", status="503 Busy"),
            "/script": page(b"", "Location: javascript:alert(1)", status="301 Moved"),
            "/elsewhere": page(b"", f"Location: {server().url}/landed#part", status="307 Moved"),
            "/same": page(b"same as before"),
            "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        }
        return known.get(path, page(path.encode(), HTML))

    return respond


SEEDS = [
    "/", "/linked", "/gone", "/busy", "/script", "/elsewhere", "/chunked", "/cut", "/moved/3",
    "/moved/30", "/private/x", "/a b", "/nothing",
]  # fmt: skip


@pytest.mark.parametrize("spider", ["seeds", "site"])
def test_both_roads_give_the_same_archive(spider: str, tmp_path: Path) -> None:
    made: list[RawServer] = []
    with RawServer(responses(lambda: made[0])) as server:
        made.append(server)
        seeds = [{"url": f"{server.url}{path}", "meta": {"from": path}} for path in SEEDS]
        # SHA-1 of "same as before": a revisit. Then a host that is not there, and no URL at all.
        known = "a7234873bfd5e944a9b88e09fbe4987f77ee7aec"
        seeds += [{"url": f"{server.url}/same", "digest": known}, {"url": "http://127.0.0.1:1/"}]
        write_jsonl(tmp_path / "seeds.jsonl", [*seeds, {"url": "http://"}])
        found = {}
        for road in ("auto", "never"):
            settings = {"AMICRAWL_DIRECT": road, "AMICRAWL_ROBOTS": "obey", "AMICRAWL_MAX_RETRIES": "0"}
            out = tmp_path / road
            done = (
                crawl(tmp_path / "seeds.jsonl", out, settings=settings)
                if spider == "seeds"
                else crawl_site(f"{server.url}/", out, settings=settings)
            )
            assert done.returncode == ExitCode.DONE, done.stderr
            found[road] = held(out)
    only = found["auto"] - found["never"], found["never"] - found["auto"]
    assert only == (Counter(), Counter())
    assert sum(found["auto"].values()) > 20
    of_robots = [row for row in rows(tmp_path / "auto") if row["link"] == "robots"]
    assert {row["url"].partition(server.url)[2] for row in of_robots} >= {"/robots.txt", "/the/rules"}


def test_robots_txt_goes_the_way_of_its_page(tmp_path: Path) -> None:
    settings = {"AMICRAWL_ROBOTS": "obey", "LOG_FORMATTER": "scrapy.logformatter.LogFormatter"}
    for road, by_engine in (("auto", 0), ("never", 1)):
        said = debug_log(tmp_path / road, {"AMICRAWL_DIRECT": road, **settings})
        # What Scrapy's engine says of each response that comes back to it.
        assert said.count("Crawled (200)") == by_engine, said
        assert [row["url"].rpartition("/")[2] for row in rows(tmp_path / road / "out")] == [
            "robots.txt",
            "1",
        ]


def debug_log(place: Path, settings: dict[str, str]) -> str:
    """Return what a crawl of one URL into *place*/out says at DEBUG, besides what the tests need."""
    place.mkdir(exist_ok=True)
    with RawServer(lambda _: page(b"x")) as server:
        seeds = write_jsonl(place / "seeds.jsonl", [{"url": f"{server.url}/1"}])
        done = warm_processes.run(
            command(seeds, place / "out", settings={"LOG_LEVEL": "DEBUG", **settings}),
            cwd=PROJECT,
            env={**environment(), "PYTHONPATH": str(place)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == ExitCode.DONE, done.stderr
    return str(done.stderr)


def uses_engine(tmp_path: Path, *, code: str = "", settings: dict[str, str] | None = None) -> bool:
    """Tell whether the URLs of a crawl went by Scrapy's engine, by what that says of itself at DEBUG."""
    (tmp_path / "plugged.py").write_text(code)
    said = debug_log(tmp_path, settings or {})
    assert len(rows(tmp_path / "out")) == 1
    return "Every URL goes by Scrapy's engine" in said


def test_urls_are_visited_directly_where_nothing_is_in_the_way(tmp_path: Path) -> None:
    assert not uses_engine(tmp_path)


def test_a_middleware_of_the_project_is_passed_by_every_url(tmp_path: Path) -> None:
    code = (
        "class Middleware:\n"
        "    def process_request(self, request):\n"
        "        print('passed', request.url)\n"
    )
    assert uses_engine(
        tmp_path, code=code, settings={"DOWNLOADER_MIDDLEWARES": '{"plugged.Middleware": 500}'}
    )


def test_a_pipeline_of_the_project_is_on_the_way_of_every_url(tmp_path: Path) -> None:
    code = "class Pipeline:\n    def process_item(self, item):\n        return item\n"
    assert uses_engine(tmp_path, code=code, settings={"ITEM_PIPELINES": '{"plugged.Pipeline": 905}'})


def test_signals_of_a_download_are_sent_for_urls_that_are_visited_directly(tmp_path: Path) -> None:
    code = (
        "from scrapy import signals\n"
        "NAMES = ['request_reached_downloader', 'response_downloaded', 'request_left_downloader',\n"
        "         'response_received']\n"
        "class Listener:\n"
        "    @classmethod\n"
        "    def from_crawler(cls, crawler):\n"
        "        self = cls()\n"
        "        self.listeners = []\n"
        "        for name in NAMES:\n"
        "            def hear(request, name=name, response=None):\n"
        "                with open('heard.txt', 'a') as file:\n"
        "                    print(name, request.url, getattr(response, 'status', None), file=file)\n"
        "            self.listeners.append(hear)\n"
        "            crawler.signals.connect(hear, getattr(signals, name))\n"
        "        return self\n"
    )
    code = code.replace("'heard.txt'", repr(str(tmp_path / "heard.txt")))
    assert not uses_engine(tmp_path, code=code, settings={"EXTENSIONS": '{"plugged.Listener": 5}'})
    heard = [line.split() for line in (tmp_path / "heard.txt").read_text().splitlines()]
    assert [(line[0], line[2]) for line in heard] == [
        ("request_reached_downloader", "None"),
        ("response_downloaded", "200"),
        ("request_left_downloader", "None"),
        ("response_received", "200"),
    ]


def test_a_page_count_of_scrapy_ends_a_crawl_whose_urls_are_visited_directly(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"x"), pause=0.05) as server:
        seeds = [{"url": f"{server.url}/{n}"} for n in range(200)]
        listed = write_jsonl(tmp_path / "seeds.jsonl", seeds)
        settings = {"CLOSESPIDER_PAGECOUNT": "3", "AMICRAWL_PER_HOST": "1"}
        crawl(listed, tmp_path / "out", settings=settings)
    assert 3 <= len(rows(tmp_path / "out")) < 20


def test_a_visit_needs_no_scrapy() -> None:
    """Whoever reads the way of a URL meets none of it there."""
    code = (
        "import sys, amicrawl.crawl.visit, amicrawl.crawl.dispatcher\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('scrapy', 'twisted')])"
    )
    done = warm_processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
