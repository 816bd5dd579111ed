"""scrapy-playwright with a real Chromium: its pages, its redirects, and what it loads with them."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from archive_reading import check_sealed, record, rows
from dashboard.browsing import ARGUMENTS, chromium_path
from guests.guest_runs import Ran, both, run, target_of
from loopback import page

if TYPE_CHECKING:
    from pathlib import Path

HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
DELAY = 0.5


def respond(head: bytes) -> bytes:
    path = head.split(b" ")[1].decode()
    if path == "/":
        links = '<a href="/moved">1</a><a href="/drawn">2</a><a href="/missing">3</a>'
        return page(f"<html><body>{links}</body></html>".encode(), "Content-Type: text/html")
    if path == "/moved":
        return page(b"", "Location: /target", status="302 Found")
    if path == "/drawn":
        script = b"<html><body><script>document.body.append('by script')</script></body></html>"
        return page(script, "Content-Type: text/html")
    if path == "/target":
        return page(b"<html><body>target</body></html>", "Content-Type: text/html")
    return page(b"<html><body>nothing</body></html>", "Content-Type: text/html", status="404 Not Found")


def test_a_project_with_a_browser_scrapes_as_before_and_is_archived(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="playwright is not installed")
    path = chromium_path()
    if not path:
        pytest.skip("Chromium is not installed; make test installs it")
    launch = {"executable_path": path, "args": ARGUMENTS, "timeout": 120_000}
    settings = {
        "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
        "PLAYWRIGHT_LAUNCH_OPTIONS": launch,
        "DOWNLOAD_DELAY": str(DELAY),
        "DOWNLOAD_DELAY_JITTER": "0",
        "DOWNLOAD_TIMEOUT": "100",
    }
    arguments = {"meta": json.dumps({"playwright": True})}
    plain, archived = both(
        "single_request.py", respond, tmp_path, arguments=arguments, settings=settings
    )
    said = {item["page"]: item["said"] for item in archived.items}
    assert said.keys() == {"/", "/target", "/drawn"}
    assert "by script" in said["/drawn"].partition("</script>")[2]
    # Pages are loaded side by side, by a browser that takes its time: their order is not the spider's.
    assert Counter(archived.requested) == Counter(plain.requested)
    # A redirect is followed within the browser, at once; what the spider requests keeps the pace.
    pages = [moment for moment, head in archived.arrivals if b" /target " not in head]
    assert pages[-1] - pages[0] >= 0.8 * DELAY * (len(pages) - 1)
    kept = {target_of(row["url"]): row for row in rows(archived.archive)}
    assert {target: row["status"] for target, row in kept.items()} == {
        "/": 200,
        "/moved": 302,
        "/target": 200,
        "/drawn": 200,
        "/missing": 404,
    }
    for target, row in kept.items():
        fields, block = record(archived.archive, row)
        assert fields["WARC-Reconstructed-By"] == HANDLER
        assert said.get(target, "").encode() in block
    for warc in archived.archive.glob("*.warc.gz"):
        check_sealed(warc)


def shown(head: bytes) -> bytes:
    path = head.split(b" ")[1].decode()
    kinds = {"/app.js": "text/javascript", "/data.json": "application/json"}
    bodies = {
        "/": b"<html><body><a href=/drawn>1</a><a href=/moved>2</a><a href=/missing>3</a></body></html>",
        "/drawn": b"<html><body><script src=/app.js></script></body></html>",
        "/app.js": b"fetch('/data.json', {method: 'POST', body: 'q'}).then((got) => got.json())"
        b".then((data) => { document.body.append(data.text); });",
        "/data.json": b'{"text": "by script"}',
        "/target": b"<html><body>target</body></html>",
    }
    if path == "/moved":
        return page(b"", "Location: /target", "Set-Cookie: a=1", status="302 Found")
    if path not in bodies:
        return page(b"nothing", "Content-Type: text/html", status="404 Not Found")
    body = bodies[path]
    return (
        b"HTTP/1.1 200 Fine\r\ncontent-TYPE: %b\r\nX-oDD-Case: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"%x;odd=1\r\n%b\r\n0\r\n\r\n" % (kinds.get(path, "text/html").encode(), len(body), body)
    )


def test_a_project_whose_browser_is_behind_the_proxy_is_archived_to_the_byte(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="playwright is not installed")
    path = chromium_path()
    if not path:
        pytest.skip("Chromium is not installed; make test installs it")
    settings = {
        "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": path, "args": ARGUMENTS, "timeout": 120_000},
        "DOWNLOAD_TIMEOUT": "100",
        # One after the other: which page has the cookie of another is not a matter of chance then.
        "CONCURRENT_REQUESTS": "1",
        "AMICRAWL_BROWSER_PROXY": "1",
    }
    wait = {"method": "wait_for_load_state", "args": ["networkidle"]}
    arguments = {"meta": json.dumps({"playwright": True, "playwright_page_methods": [wait]})}
    plain, archived = both("browsing.py", shown, tmp_path, arguments=arguments, settings=settings)
    # What the server sees is what it saw, cookies and all, and the project logs the same.
    assert _sent(archived) == _sent(plain)
    assert _logged(archived) == _logged(plain)
    said = {item["page"]: item["said"] for item in archived.items}
    assert said.keys() == {"/", "/drawn", "/target", "/missing"}
    assert "by script" in said["/drawn"]
    kept = {target_of(row["url"]): row for row in rows(archived.archive)}
    assert kept.keys() >= {"/", "/drawn", "/app.js", "/data.json", "/moved", "/target", "/missing"}
    assert len(rows(archived.archive)) == len(archived.requested)
    for target, row in kept.items():
        fields, block = record(archived.archive, row)
        assert "WARC-Reconstructed-By" not in fields
        assert block == shown(f"GET {target} HTTP/1.1\r\n\r\n".encode())
    for warc in archived.archive.glob("*.warc.gz"):
        check_sealed(warc)


def test_the_browser_of_a_project_behind_the_proxy_sends_the_cookies_of_the_operator(
    tmp_path: Path,
) -> None:
    pytest.importorskip("playwright", reason="playwright is not installed")
    path = chromium_path()
    if not path:
        pytest.skip("Chromium is not installed; make test installs it")
    cookies = tmp_path / "cookies.txt"
    cookies.write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\tgeheim\n")
    cookies.chmod(0o600)
    settings = {
        "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": path, "args": ARGUMENTS, "timeout": 120_000},
        "DOWNLOAD_TIMEOUT": "100",
        "AMICRAWL_BROWSER_PROXY": "1",
        "AMICRAWL_COOKIES": f"file:{cookies}",
    }
    arguments = {"meta": json.dumps({"playwright": True})}
    ran = run(
        "single_request.py", respond, tmp_path, has_line=True, arguments=arguments, settings=settings
    )
    assert ran.returncode == 0, ran.log
    assert {"GET /", "GET /drawn", "GET /target"} <= set(ran.requested)
    assert all(b"sid=geheim" in head for _, head in ran.arrivals), ran.arrivals
    for warc in ran.archive.glob("*.warc.gz"):
        assert b"geheim" not in gzip.decompress(warc.read_bytes())


def _sent(ran: Ran) -> list[list[bytes]]:
    """Return the request heads that the server saw, without the address."""
    return sorted(
        sorted(re.sub(rb"127\.0\.0\.1:\d+", b"SITE", line) for line in head.strip().split(b"\r\n"))
        for _, head in ran.arrivals
    )


def _logged(ran: Ran) -> list[str]:
    """Return what scrapy-playwright logged, without times, ports and numbers of pages."""
    lines = (line for line in ran.log.splitlines() if "[scrapy-playwright]" in line)
    return sorted(re.sub(r":\d+/", "/", line.partition("[scrapy-playwright]")[2]) for line in lines)
