"""Pages that want to hold a crawl up, each bounded, and the crawl goes on."""

import json
from pathlib import Path

from archive_reading import records, rows
from browser.browsing_site import answer, crawl_pages, needs_chromium, path_of
from loopback import RawServer

pytestmark = needs_chromium

HOSTILE = {
    "/endless": "for (;;) ;",
    "/alerts": "for (;;) alert('again');",
    "/many": "for (let n = 0; n < 10000; n += 1) fetch('/n?' + n).catch(() => 0);",
    "/restless": "setInterval(() => fetch('/tick?' + Math.random()), 100);",
    "/goes": "setInterval(() => { location.href = '/goes?' + Math.random(); }, 20);",
    "/eats": "const held = []; setInterval(() => held.push(new Uint8Array(50 << 20).fill(1)), 10);",
    "/takes": "fetch('/large').then((found) => found.arrayBuffer());",
    "/masks": "navigator.serviceWorker.register('/worker.js');",
}
WORKER = b"""self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
self.addEventListener("fetch", (event) => event.respondWith(new Response("mine", {status: 200})));"""


def site(head: bytes) -> bytes:
    path = path_of(head).partition("?")[0]
    if path == "/":
        links = "".join(f"<a href={each}>{each}</a>" for each in [*HOSTILE, "/last"])
        return answer(f"<title>start</title>{links}".encode())
    if path in HOSTILE:
        return answer(f"<title>{path[1:]}</title><p>{path}</p><script>{HOSTILE[path]}</script>".encode())
    if path == "/worker.js":
        return answer(WORKER, "text/javascript")
    if path == "/large":
        # What it says is 2 GiB; what it sends is more than a page may have.
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n" + bytes(4 << 20)
    return answer(b"<title>one</title><p>ordinary", "text/html")


def test_hostile_pages_are_bounded_and_the_crawl_goes_on(tmp_path: Path) -> None:
    with RawServer(site) as server:
        done = crawl_pages(
            f"{server.url}/", tmp_path,
            {
                "AMICRAWL_BROWSER_PAGE_TIME": "12",
                "AMICRAWL_BROWSER_PAGES": "3",
                "AMICRAWL_PER_HOST": "4",
                "AMICRAWL_BROWSER_PAGE_REQUESTS": "12",
                "AMICRAWL_BROWSER_PAGE_BYTES": "2MiB",
                "AMICRAWL_BROWSER_PAGE_MEMORY": "400MiB",
                "AMICRAWL_MAX_HOPS": "1",
            },
        )  # fmt: skip
        asked = [path_of(head).partition("?")[0] for head in server.requests]
    assert done.returncode == 0, done.stderr
    pages = {
        row["url"].removeprefix(server.url): row for row in rows(tmp_path) if row["page"] == row["url"]
    }
    assert {"/", "/last", *HOSTILE} <= pages.keys()
    ended = {
        each.rec_headers["WARC-Target-URI"].removeprefix(f"urn:pageinfo:{server.url}"): json.loads(
            each.content_stream().read()
        )
        for each in records(tmp_path)
        if each.rec_headers.get("WARC-Target-URI", "").startswith("urn:pageinfo:")
    }
    assert ended["/last"]["ended"] == "quiet"
    assert ended["/masks"]["ended"] == "quiet"
    assert ended["/restless"]["ended"] in {"restless", "time"}
    # What never gets quiet is read all the same.
    assert ended["/restless"]["title"] == "restless"
    assert ended["/endless"]["ended"] != "quiet"
    assert ended["/alerts"]["ended"] == "it opened dialogs without end"
    assert ended["/eats"]["ended"] in {"it crashed", "time"}
    assert any(each.startswith("navigation: ") for each in ended["/goes"]["refused"])
    # Beyond its requests and its bytes, a page gets nothing, and the index says so.
    assert asked.count("/n") <= 2 * 12
    reasons = [row["error"] for row in rows(tmp_path) if row["page"].endswith("/many")]
    assert sum("asked for 12 before" in each for each in reasons) > 0
    assert len(reasons) <= 2 * 2 * 12 + 5
    (large,) = [row for row in rows(tmp_path) if row["url"].endswith("/large")]
    assert large["truncated"] == "length"
    assert large["body_length"] <= 2 << 20
