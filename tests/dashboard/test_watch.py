"""`amicrawl watch`: one crawl in a browser, from its directory alone, and its control files."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import warm_processes
from dashboard.browsing import chromium, expect, open_page, sideways, violations, visit
from dashboard_client import IDENT, OTHER, DashboardClient, run_job
from dashboard_serving import serve_in_thread
from loopback import RawServer

from amicrawl.archive.report import LiveFigures, figures_of
from amicrawl.crawl import write_control
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, InputError, UsageError
from amicrawl.fleet.dashboard.app import Hosts
from amicrawl.fleet.dashboard.watching import WatchedCrawl, watch_application
from amicrawl.listing import PLAN_NAME
from amicrawl.record import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redis_server import RedisServer

PAGES = 2000


def site(head: bytes) -> bytes:
    path = head.split(b" ", 2)[1].decode()
    number = int("".join(filter(str.isdigit, path)) or 0)
    links = "".join(f"<a href=/p{each}>x</a>" for each in range(3 * number + 1, 3 * number + 4))
    body = f"<title>{number}</title><p>page{links if number < PAGES else ''}".encode()
    status = b"404 Not Found" if number % 7 == 6 else b"200 OK"
    return b"HTTP/1.1 %b\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (
        status, len(body), body,
    )  # fmt: skip


@contextmanager
def crawling(out: Path, *further: str) -> Iterator[subprocess.Popen[str]]:
    """Crawl a site that takes minutes, and wait until something came."""
    with RawServer(site) as server:
        command = [sys.executable, "-m", "amicrawl", "crawl", f"{server.url}/p0", "-o", str(out)]
        settings = ["-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8", "--delay", "0.05", *further]
        with warm_processes.Popen([*command, *settings], stderr=subprocess.PIPE, text=True) as process:
            try:
                wait_for((out / "history.jsonl").exists)
                yield process
            finally:
                process.send_signal(signal.SIGKILL)


def wait_for(ready: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def watching(out: Path) -> Iterator[str]:
    """Serve the page of the crawl in *out*; yield its address."""
    command = [sys.executable, "-m", "amicrawl", "watch", str(out), "--port", "0"]
    with warm_processes.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found is not None
            yield found[0]
        finally:
            process.terminate()
            assert process.wait(30) == 0


def status_of(out: Path) -> dict[str, object]:
    said: dict[str, object] = json.loads((out / "control" / "status.json").read_bytes())
    return said


@pytest.mark.slow
def test_a_crawl_is_watched_paused_changed_and_stopped_in_a_browser(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with crawling(out) as process, watching(out) as url, chromium() as browser:
        with open_page(browser, expected="409") as page:
            visit(page, url)
            expect(page.locator("#live")).to_have_attribute("data-state", "running")
            expect(page.locator(".tail li").first).to_contain_text("/p")
            assert violations(page) == []
            page.get_by_role("button", name="Pause").click()
            wait_for(lambda: status_of(out)["state"] == "paused")
            expect(page.locator("#live")).to_have_attribute("data-state", "paused")
            page.locator("#steer summary").click()
            page.locator("#value").fill("0.25")
            page.get_by_role("button", name="Set").click()
            wait_for(lambda: status_of(out)["delay"] == 0.25)
            expect(page.locator("#set")).to_contain_text("delay 0.25 s")
            page.get_by_role("button", name="Resume").click()
            wait_for(lambda: status_of(out)["state"] == "running")
            page.locator("#value").fill("soon")
            page.get_by_role("button", name="Set").click()
            expect(page.locator(".notices .bad")).to_contain_text("not a number of seconds")
        (out / "control" / "stop").touch()
        assert process.wait(60) == 6
        with open_page(browser, width=390, scheme="dark") as page:
            visit(page, url)
            expect(page.locator("#live")).to_have_attribute("data-state", "ended")
            expect(page.locator("#watch-verbs")).to_be_hidden()
            expect(page.locator(".state-line")).to_contain_text("stop-file")
            assert sideways(page) <= 0
            assert violations(page) == []


def requested(url: str, *, headers: dict[str, str] | None = None, form: str | None = None) -> int:
    data = None if form is None else form.encode()
    request = urllib.request.Request(url, data=data, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.slow
def test_neither_another_name_nor_a_forged_request_reaches_a_crawl_and_it_ends_with_it(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    with crawling(out, "--watch") as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("watch "))
        url = line.split()[-1]
        assert requested(url) == 200
        assert requested(url, headers={"Host": "rebound.example"}) == 421
        assert requested(f"{url}control", form="verb=stop") == 403
        assert (
            requested(f"{url}control", form="verb=stop", headers={"Origin": "http://x.example"}) == 403
        )
        assert not (out / "control" / "stop").exists()
    port = urllib.parse.urlsplit(url).port

    def is_gone() -> bool:
        try:
            return requested(f"http://127.0.0.1:{port}/") != 200
        except OSError:
            return True

    wait_for(is_gone)


@pytest.mark.slow
def test_the_crawl_of_several_processes_is_one_on_the_page(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with crawling(out, "--processes", "2") as process:
        wait_for(lambda: len(list(out.glob("processes/*/control/status.json"))) == 2)
        crawl = WatchedCrawl(out, write=lambda *said: write_control(*said, disk=Disk()))
        wait_for(lambda: crawl.now()["figures"].rows > 5)
        shown = crawl.now()
        assert shown["is_running"]
        assert shown["status"]["in_flight"] is not None
        crawl.change("pause", "")
        statuses = list(out.glob("processes/*/control/status.json"))
        wait_for(lambda: all(json.loads(path.read_bytes())["paused_by"] for path in statuses))
        crawl.change("resume", "")
        crawl.change("stop", "")
        process.wait(60)
    assert crawl.now()["state"] == "ended"
    assert crawl.now()["figures"].rows == figures_of(out).rows
    assert [run.reason for run in crawl.now()["figures"].history.runs] != []


def index_row(url: str, **values: object) -> dict[str, object]:
    empty = {"string": "", "int32": 0, "int64": 0, "bool": False}
    kinds = zip(CAPTURES.names, CAPTURES.types, strict=True)
    return {name: empty[str(kind)] for name, kind in kinds} | {"url": url} | values


def test_what_came_since_is_added_and_a_half_written_row_comes_later(tmp_path: Path) -> None:
    rows = [index_row(f"http://a.example/{n}", host="a.example", status=200) for n in range(5)]
    lines = [json.dumps(row).encode() for row in rows]
    journal = tmp_path / "captures-00000.open"
    journal.write_bytes(b"\n".join(lines[:3]) + b"\n" + lines[3][:40])
    live = LiveFigures(tmp_path)
    assert live.update().rows == 3
    assert live.update().rows == 3, "nothing is counted twice"
    journal.write_bytes(b"\n".join(lines) + b"\n")
    assert live.update().rows == 5
    assert [each["url"][-1] for each in live.latest.rows] == list("01234")
    assert live.figures.hosts["a.example"].rows == 5


def test_a_row_with_megabytes_of_metadata_does_not_hide_those_behind_it(tmp_path: Path) -> None:
    rows = [index_row(f"http://a.example/{n}", status=200) for n in range(3)]
    rows[1]["meta_json"] = json.dumps({"text": "x" * (5 << 20)})
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "captures-00000.open").write_text(lines)
    assert LiveFigures(tmp_path).update().rows == 3


def test_an_index_that_cannot_be_read_is_no_half_a_crawl_the_next_time(tmp_path: Path) -> None:
    table = tmp_path / "captures.parquet"
    rows = [index_row(f"http://a.example/{n}", status=200) for n in range(4)]
    with pq.ParquetWriter(table, CAPTURES) as writer:
        for half in (rows[:2], rows[2:]):
            writer.write_table(pa.Table.from_pylist(half, schema=CAPTURES))
    block = bytearray(table.read_bytes())
    block[pq.read_metadata(table).row_group(1).column(0).data_page_offset] ^= 0xFF
    table.write_bytes(block)
    live = LiveFigures(tmp_path)
    for _ in range(2):
        with pytest.raises(AmicrawlError, match=r"captures\.parquet"):
            live.update()


@pytest.mark.slow
def test_what_a_server_says_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    rows = [
        index_row(f"http://a.example/{evil}", status=200, content_type=evil),
        index_row(f"http://{evil}/", host=evil, error=f"{evil}: {evil}"),
    ]
    (tmp_path / "captures-00000.open").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "control").mkdir()
    hosts = [{"name": evil, "reason": evil, "in_flight": 1}]
    status = {
        "state": evil,
        "paused_by": [evil],
        "hosts": hosts,
        "links": {evil: 3},
        "ignored": {evil: 1},
    }
    (tmp_path / "control" / "status.json").write_text(json.dumps(status))
    with watching(tmp_path) as url, chromium() as browser, open_page(browser) as page:
        visit(page, url)
        expect(page.locator(".tail li").first).to_contain_text("onerror")
        # The script has fetched it again by then.
        page.wait_for_timeout(3000)
        assert page.locator("img, main script").count() == 0


@pytest.mark.slow
def test_what_has_the_focus_keeps_it_while_the_page_is_drawn_again(tmp_path: Path) -> None:
    journal = tmp_path / "captures-00000.open"
    rows = [index_row(f"http://a.example/{n}", host="a.example", status=200) for n in range(60)]
    lines = [f"{json.dumps(row)}\n" for row in rows]
    journal.write_text("".join(lines[:50]))
    with watching(tmp_path) as url, chromium() as browser, open_page(browser) as page:
        visit(page, url)
        summary = page.locator(".report summary").first
        summary.focus()
        page.keyboard.press("Enter")
        journal.write_text("".join(lines[:55]))
        expect(page.locator('[data-t="rows"]')).to_have_text("55")
        expect(summary).to_be_focused()
        expect(page.locator(".report details").first).to_have_attribute("open", "")
        page.keyboard.press("Enter")
        tail = page.locator(".scroll.tall").first
        tail.focus()
        tail.evaluate("(node) => { node.scrollTop = 90; }")
        journal.write_text("".join(lines))
        expect(page.locator('[data-t="rows"]')).to_have_text("60")
        expect(page.locator(".tail li").first).to_contain_text("/59")
        expect(tail).to_be_focused()
        assert tail.evaluate("(node) => node.scrollTop") == 90
        expect(page.locator(".report details").first).not_to_have_attribute("open", "")
        assert violations(page) == []


def test_urls_are_shown_by_state_and_hosts_with_their_wait_and_share(tmp_path: Path) -> None:
    names = ["a.example", "a.example", "a.example", "b.example"]
    rows = [index_row(f"http://{name}/{n}", host=name, status=200) for n, name in enumerate(names)]
    rows.append(index_row("http://b.example/no", host="b.example", error="robots-denied: it says no"))
    (tmp_path / "captures-00000.open").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "control").mkdir()
    hosts = [{"name": "a.example", "waiting": 7, "pages": 3, "opens_in": 1.5, "reason": "delay"}]
    urls = {"pending": 7, "captured": 1300, "gone": 0}
    status = {"state": "running", "hosts": hosts, "urls": urls}
    (tmp_path / "control" / "status.json").write_text(json.dumps(status))
    with watching(tmp_path) as url, urllib.request.urlopen(f"{url}live") as response:
        text = response.read().decode()
    row = re.search(r">a\.<wbr>example</th>(.*?)</tr>", text)
    assert row is not None
    assert re.findall(r"<td[^>]*>([^<]*)", row[1]) == ["–", "7", "3", "75 %", "1.5 s: delay"]
    assert re.search(r'data-t="rows">4<', text), "what was not requested was not fetched"
    known = re.search(r'id="urls">(.*?)</p>', text)
    assert known is not None
    assert re.sub("<[^>]+>", "", known[1]) == "URLs known, by state: pending 7, captured 1,300"


def test_what_is_not_known_of_a_machine_is_no_zero_and_a_full_disk_is(tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    for free, shown in ((None, "–"), (0, "0 B")):
        status = {"state": "running", "memory": 0, "free": free}
        (tmp_path / "control" / "status.json").write_text(json.dumps(status))
        text = live(tmp_path)
        assert re.findall(r'data-t="(?:memory|free)">([^<]*)', text) == ["–", shown]


def test_what_was_not_requested_is_no_page_a_second(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"at": 1e9, "started": "amicrawl/1", "every": 1}]
    lines += [{"at": 1e9 + n, "state": "running", "ok": 10 * n, "skipped": 500 * n} for n in (1, 3)]
    (tmp_path / "history.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with DirectoryLock(tmp_path):
        assert 'data-t="rate">10.0<' in live(tmp_path)


def test_a_directory_whose_name_is_no_text_is_shown_with_what_is_crawled(tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"odd\xff\xe2\x80\xae")
    (out / "control" / "ignores").mkdir(parents=True)
    crawl = {"asked": {"url": "http://a.example/\u202e", "file": "seeds.txt", "depth": 3}}
    (out / "crawl.json").write_text(json.dumps(crawl))
    application = watch_application(watched(out), hosts=Hosts("127.0.0.1"))

    async def requested() -> tuple[str, str]:
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            page = (await client.get("/")).text
            token = re.search(r'csrf-token" content="(\w+)"', page)
            assert token is not None
            sent = {"x-csrf-token": token[1]}
            said = {"verb": "ignore", "value": "x"}
            refused = await client.post("/control", data=said, headers=sent)
            return page, str(refused.json()["detail"])

    page, detail = asyncio.run(requested())
    assert r"odd\udcff\u202e" in page
    assert re.search(r'id="asked"[^>]*>http://a.example/\\u202e seeds.txt<', page)
    assert "ignores cannot be read" in detail


def live(out: Path) -> str:
    """Return the part of the page that is drawn again and again."""
    application = watch_application(watched(out), hosts=Hosts("127.0.0.1"))

    async def requested() -> str:
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.get("/live")).text

    return asyncio.run(requested())


def watched(out: Path) -> WatchedCrawl:
    return WatchedCrawl(out, write=lambda *said: write_control(*said, disk=Disk()))


def test_patterns_that_several_add_at_once_are_all_kept(tmp_path: Path) -> None:
    crawl = watched(tmp_path)
    patterns = [f"pattern-{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda pattern: crawl.change("ignore", pattern), patterns))
    assert sorted((tmp_path / "control" / "ignores").read_text().split()) == sorted(patterns)


def test_a_pattern_more_than_a_crawl_takes_is_refused(tmp_path: Path) -> None:
    """The page took it, and the crawl then followed no change of the file any more."""
    crawl, ignores = watched(tmp_path), tmp_path / "control" / "ignores"
    ignores.parent.mkdir()
    ignores.write_text("".join(f"/{number}/\n" for number in range(1000)))
    with pytest.raises(InputError, match="line 1001: more than 1000 patterns"):
        crawl.change("ignore", "/calendar/")
    ignores.write_text(f"# {'x' * 1024**2}\n")
    with pytest.raises(InputError, match="would be larger than 1048576 bytes"):
        crawl.change("ignore", "/calendar/")


@pytest.mark.parametrize("pattern", ["", "  ", "# a remark"])
def test_a_pattern_that_ignores_nothing_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match="ignores nothing"):
        watched(tmp_path).change("ignore", pattern)


def test_a_file_of_patterns_that_is_no_text_is_left_as_it_is_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "control" / "ignores"
    path.parent.mkdir()
    path.write_bytes(b"\xff\n")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        watched(tmp_path).change("ignore", "x")
    assert path.read_bytes() == b"\xff\n"


JPEG = b"\xff\xd8\xff\xe0 not much of a picture"


def record(kind: str, uri: str, block: bytes) -> bytes:
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Record-ID: <urn:uuid:1>\r\n"
    return gzip.compress(
        head.encode()
        + b"WARC-Date: 2026-01-01T00:00:00Z\r\nContent-Length: %d\r\n\r\n" % len(block)
        + block
        + b"\r\n\r\n"
    )


def test_the_page_of_a_job_shows_its_pages_where_its_directory_is_here(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    url = "http://a.example/"
    directory = tmp_path / f"a.example-inf-20261121-120000-{IDENT[:5]}"
    directory.mkdir()
    before, picture = record("warcinfo", "x", b""), record("resource", f"urn:screenshot:{url}", JPEG)
    text = record("resource", f"urn:text:{url}", b"<b>Title\n\nwords")
    (directory / "a-00000.warc.gz").write_bytes(before + text + picture)
    key = "0" * 36
    ends = len(before + text + picture)
    rows = [
        index_row(f"{url}x", warc_file="a-00000.warc.gz", warc_length=len(before)),
        index_row(url, page=url, resource_type="document", status=200, record_id=f"<urn:uuid:{key}>",
                  warc_file="a-00000.warc.gz", warc_offset=ends, warc_length=9),
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=CAPTURES), directory / "captures.parquet")
    with redis_server.client() as client:
        run_job(client, IDENT, slug="a.example-inf")
        run_job(client, OTHER)
    with serve_in_thread(redis_server.url, archives=tmp_path) as running:
        api = DashboardClient(running.url)
        page = api.page(f"/jobs/{IDENT}").text
        assert "&lt;b&gt;Title" in page
        assert f'src="/jobs/{IDENT}/pictures/{key}"' in page
        reply = api.page(f"/jobs/{IDENT}/pictures/{key}")
        assert (reply.content, reply.headers["content-type"]) == (JPEG, "image/jpeg")
        assert "sandbox" in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert api.page(f"/jobs/{OTHER}/pictures/{key}").status_code == 404
        assert api.page(f"/jobs/{IDENT}/pictures/{'1' * 36}").status_code == 404
        assert "Latest pages" not in api.page(f"/jobs/{OTHER}").text


def test_a_page_has_its_own_picture_and_title_and_nothing_else_of_the_file(tmp_path: Path) -> None:
    pictures = {
        "good": JPEG,
        "script": b"<svg onload=alert(1)>",
        "large": JPEG + bytes(5 << 20),
        "elsewhere": JPEG,
        "torn": JPEG,
    }
    written, rows = b"", []
    for number, (name, picture) in enumerate(pictures.items()):
        url = f"http://a.example/{name}"
        response = record("response", url, b"HTTP/1.1 200 OK\r\n\r\nx")
        rows.append(
            index_row("http://a.example/style.css", warc_file="a-00000.warc.gz",
                      warc_offset=len(written), warc_length=len(response))
        )  # fmt: skip
        written += response
        screenshot = record(
            "resource", f"urn:screenshot:{'http://b.example/' if name == 'elsewhere' else url}", picture
        )
        written += record("resource", f"urn:text:{url}", f"Title of <{name}>\n\nwords".encode())
        written += screenshot[:40] if name == "torn" else screenshot
        rows.append(
            index_row(url, page=url, resource_type="document", status=200, fetched_at=number,
                      record_id=f"<urn:uuid:{number:036x}>", warc_file="a-00000.warc.gz",
                      warc_offset=len(written), warc_length=len(response),
                      meta_json='{"page_fault": "restless"}')
        )  # fmt: skip
        written += response
    rows.append(
        index_row("http://a.example/up", page="http://a.example/up", resource_type="document",
                  record_id=f"<urn:uuid:{9:036x}>", error="x: y", warc_file="../a-00000.warc.gz",
                  warc_offset=100)
    )  # fmt: skip
    (tmp_path / "a-00000.warc.gz.open").write_bytes(written)
    (tmp_path / "captures-00000.open").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    crawl = WatchedCrawl(tmp_path, write=lambda *_: None)
    pages = {page["url"].rpartition("/")[2]: page for page in crawl.now()["pages"]}
    assert [name for name in pages if pages[name]["key"]] == ["good"]
    assert crawl.picture(pages["good"]["key"]) == JPEG
    assert crawl.picture("../a-00000.warc.gz") is None
    assert pages["good"]["title"] == "Title of <good>"
    assert pages["good"]["fault"] == "restless"
    assert pages["up"]["title"] == ""
    assert pages["up"]["said"] == "x"


@pytest.mark.slow
def test_pages_of_a_crawl_in_a_browser_are_shown_with_their_pictures(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(site) as server:
        command = [sys.executable, "-m", "amicrawl", "crawl", f"{server.url}/p0", "-o", str(out)]
        settings = ["AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8", "AMICRAWL_BROWSER_SANDBOX=0"]
        flags = [word for setting in settings for word in ("-s", setting)]
        warm_processes.run([*command, "--browser", "--max-pages", "3", *flags], check=False, timeout=120)
    with watching(out) as url, chromium() as browser, open_page(browser, width=390) as page:
        visit(page, url)
        shown = page.locator(".shown li", has_text="/p0")
        expect(shown.locator(".title")).to_have_text("0")
        shown.locator("img").scroll_into_view_if_needed()
        page.wait_for_function("document.querySelector('.shown li:last-child img').naturalWidth > 300")
        assert violations(page) == []
        assert sideways(page) <= 0
        address = url.rstrip("/") + str(shown.locator("img").get_attribute("src"))
        with urllib.request.urlopen(address, timeout=30) as response:
            assert response.headers["content-type"] == "image/jpeg"
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "sandbox" in response.headers["content-security-policy"]
        assert requested(address, headers={"Host": "rebound.example"}) == 421
        assert requested(url + "pictures/..%2fcrawl.json") == 404


@pytest.mark.parametrize(
    ("name", "text"),
    [("delay", "soon"), ("per_host", "0"), ("concurrency", "1.5"), ("ignores", "(")],
)
def test_a_control_file_that_a_crawl_would_not_follow_is_not_written(
    tmp_path: Path, name: str, text: str
) -> None:
    with pytest.raises(InputError):
        write_control(tmp_path, name, text, disk=Disk())
    assert not (tmp_path / "control" / name).exists()


def test_more_requests_at_once_than_a_crawl_can_have_are_refused(tmp_path: Path) -> None:
    (tmp_path / "processes").mkdir()
    (tmp_path / "processes" / PLAN_NAME).write_text("{}")
    for part in ("0", "1"):
        control = tmp_path / "processes" / part / "control"
        control.mkdir(parents=True)
        (control / "status.json").write_text('{"concurrency": 40, "concurrency_max": 50}')
    crawl = WatchedCrawl(tmp_path, write=partial(write_control, disk=Disk()))
    with pytest.raises(UsageError, match="100 requests in flight at most"):
        crawl.change("concurrency", "101")
    assert not (tmp_path / "control").exists()
    crawl.change("concurrency", "100")
    assert (tmp_path / "control" / "concurrency").read_text() == "100\n"


def test_only_control_files_are_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_control(tmp_path, "../crawl.json", "x", disk=Disk())
    write_control(tmp_path, "pause", "", disk=Disk())
    write_control(tmp_path, "pause", None, disk=Disk())
    write_control(tmp_path, "pause", None, disk=Disk())
    assert not (tmp_path / "control" / "pause").exists()
