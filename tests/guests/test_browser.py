"""scrapy-playwright with a real Chromium: its pages, its redirects, and what it loads with them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from archive_reading import check_sealed, record, rows
from dashboard.browsing import ARGUMENTS, chromium_path
from guests.guest_runs import both, target_of
from loopback import page

if TYPE_CHECKING:
    from pathlib import Path

HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
DELAY = 0.5


def answer(head: bytes) -> bytes:
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
    plain, archived = both("asking.py", answer, tmp_path, arguments=arguments, settings=settings)
    said = {item["page"]: item["said"] for item in archived.items}
    assert said.keys() == {"/", "/target", "/drawn"}
    assert "by script" in said["/drawn"].partition("</script>")[2]
    # Pages are loaded side by side, by a browser that takes its time: their order is not the spider's.
    assert Counter(archived.asked) == Counter(plain.asked)
    # A redirect is followed within the browser, at once; what the spider asks for keeps the pace.
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
