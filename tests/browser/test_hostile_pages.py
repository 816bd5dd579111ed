"""Pages that want to hold a crawl up, each bounded, and the crawl goes on."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive_reading import records, rows
from browser.browsing_site import crawl_pages, needs_chromium, path_of, response
from loopback import RawServer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_chromium

LONG = bool(os.environ.get("AMICRAWL_BROWSER_LONG"))
"""Whether what takes a minute and both processors is opened, too."""
MEMORY, REQUESTS = "its process took more than 419,430,400 bytes", 12
MOST_OPENED = 4
"""Times that a page is opened whose browser died; docs/browser.md."""
WHOLE, STUCK, UP = "quiet", "its scripts did not pause", "its time was up"
ENDING = {
    "/alerts": ("for (;;) alert('again');", {"it opened dialogs without end"}),
    "/opens": ("for (;;) window.open('/window?' + Math.random());", {"it opened windows without end"}),
    "/goes": ("setInterval(() => { location.href = '/goes?' + Math.random(); }, 20);", {WHOLE}),
    "/leaves": ("setTimeout(() => { location.href = 'about:blank'; }, 600);",
                {WHOLE, "it left its document"}),
    "/crashes": ("location.href = 'chrome://crash'; window.open('chrome://crash');", {WHOLE}),
    "/eats": ("let a = []; setInterval(() => a.push(new Uint8Array(50 << 20).fill(1)), 10);", {MEMORY}),
    "/takes": ("fetch('/large').then((found) => found.arrayBuffer());", {WHOLE}),
    "/masks": ("navigator.serviceWorker.register('/worker.js');", {WHOLE}),
}  # fmt: skip
"""Scripts, and how the pages may end that have them; on a machine however busy."""
GOING_ON = {
    "/endless": ("for (;;) ;", {STUCK, UP}),
    "/many": ("for (let n = 0; n < 10000; n += 1) fetch('/n?' + n).catch(() => 0);",
              {WHOLE, UP, STUCK, MEMORY, "it crashed"}),
    "/restless": ("setInterval(() => fetch('/tick?' + Math.random()), 100);", {WHOLE, "restless", UP}),
    "/gives": ("setInterval(() => fetch('/up', {method: 'POST', body: 'a'.repeat(1 << 20)}), 100);",
               {WHOLE, "restless", UP}),
}  # fmt: skip
"""Those that take all of a page's time, or may."""
if LONG:
    STRESSED = {WHOLE, STUCK, UP, MEMORY, "restless", "it crashed"}
    GOING_ON |= {
        "/blobs": (
            "setInterval(() => window.open(URL.createObjectURL(new Blob(['a']))), 10);",
            # On a busy machine it may be quiet before it has opened as many.
            {WHOLE, "it opened windows without end"},
        ),
        "/frames": (
            """for (let n = 0; n < 500; n += 1) {
                 document.body.append(Object.assign(document.createElement("iframe"), {src: "/f?" + n}));
               }""",
            STRESSED,
        ),
        "/workers": (
            """const code = URL.createObjectURL(new Blob(["for (;;) ;"]));
               for (let n = 0; n < 200; n += 1) new Worker(code);""",
            STRESSED,
        ),
        "/wide": (
            "for (let n = 0; n < 2e6; n += 1) document.body.append(document.createElement('p'));",
            STRESSED,
        ),
        "/deep": (
            """let at = document.body;
               for (let n = 0; n < 1e5; n += 1) at = at.appendChild(document.createElement("div"));""",
            STRESSED,
        ),
        "/prints": ("setInterval(() => print(), 10);", {WHOLE}),
        "/stays": ("onbeforeunload = (event) => { event.preventDefault(); for (;;) ; };", {WHOLE}),
        "/loads": (
            """const a = Object.assign(document.createElement("a"), {href: "/file", download: "x"});
               setInterval(() => a.click(), 10);""",
            {WHOLE},
        ),
        "/writes": (
            """setInterval(() => {
                 document.open(); document.write(Math.random()); document.close();
               }, 50);""",
            {WHOLE},
        ),
        "/says": ("for (let n = 0; n < 2e5; n += 1) console.log('x'.repeat(1000));", {WHOLE, STUCK, UP}),
        "/throws": ("setInterval(() => { throw new Error('x'.repeat(1e5)); }, 0);", STRESSED),
        "/names": (
            "setInterval(() => { document.title = 'x'.repeat(1e7) + Math.random(); }, 1);",
            STRESSED,
        ),
    }
    GOING_ON = {path: (script, may | {UP}) for path, (script, may) in GOING_ON.items()}
WORKER = b"""self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
self.addEventListener("fetch", (event) => event.respondWith(new Response("mine", {status: 200})));"""


def respond(hostile: dict[str, tuple[str, set[str]]], head: bytes) -> bytes:
    path = path_of(head).partition("?")[0]
    if path == "/":
        links = "".join(f"<a href={each}>{each}</a>" for each in [*hostile, "/last"])
        return response(f"<title>start</title>{links}".encode())
    if path in hostile:
        script = hostile[path][0]
        return response(f"<title>{path[1:]}</title><p>{path}</p><script>{script}</script>".encode())
    if path == "/worker.js":
        return response(WORKER, "text/javascript")
    if path == "/large":
        # What it says is 2 GiB; what it sends is more than a page may have.
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n" + bytes(4 << 20)
    return response(b"<title>one</title><p>ordinary", "text/html")


@dataclass
class Crawled:
    """What the server was requested, the rows, and what is recorded of each page, by its path."""

    requested: list[str]
    captures: list[dict[str, Any]]
    infos: dict[str, Any]


def crawled(hostile: dict[str, tuple[str, set[str]]], out: Path, *, page_time: int) -> Crawled:
    """Crawl a site of *hostile* pages and an ordinary one; each is bounded, and the crawl goes on."""
    with RawServer(lambda head: respond(hostile, head)) as server:
        done = crawl_pages(
            f"{server.url}/", out,
            {
                "AMICRAWL_BROWSER_PAGE_TIME": str(page_time),
                "AMICRAWL_BROWSER_PAGES": "3",
                "AMICRAWL_PER_HOST": "4",
                "AMICRAWL_BROWSER_PAGE_REQUESTS": str(REQUESTS),
                "AMICRAWL_BROWSER_PAGE_BYTES": "2MiB",
                "AMICRAWL_BROWSER_PAGE_MEMORY": "400MiB",
                "AMICRAWL_MAX_HOPS": "1",
            },
        )  # fmt: skip
        requested = [path_of(head).partition("?")[0] for head in server.requests]
    assert done.returncode == 0, done.stderr
    # What goes wrong in a page is no fault of the crawl.
    assert [line for line in done.stderr.splitlines() if "Traceback" in line] == []
    captures = rows(out)
    pages = {row["url"].removeprefix(server.url): row for row in captures if row["page"] == row["url"]}
    assert {"/", "/last", *hostile} <= pages.keys()
    infos = {
        each.rec_headers["WARC-Target-URI"].removeprefix(f"urn:pageinfo:{server.url}"): json.loads(
            each.content_stream().read()
        )
        for each in records(out)
        if each.rec_headers.get("WARC-Target-URI", "").startswith("urn:pageinfo:")
    }
    ended = {path: info["ended"] for path, info in infos.items()}
    assert ended["/last"] == WHOLE
    unexpected = {path: ended[path] for path, (_, may) in hostile.items() if ended[path] not in may}
    assert not unexpected
    # Its row has the reason, too; of those that were shown as a whole, there is none to name.
    for path, reason in ended.items():
        named = json.loads(pages[path]["meta_json"] or "{}").get("page_fault", WHOLE)
        assert named == reason or {named, reason} == {WHOLE, "restless"}
    # A page that is at fault itself is not opened again.
    assert requested.count("/last") == 1
    return Crawled(requested, captures, infos)


def test_hostile_pages_are_bounded_and_the_crawl_goes_on(tmp_path: Path) -> None:
    found = crawled(ENDING, tmp_path, page_time=60)
    assert found.requested.count("/opens") == 1
    assert sum(path == "/window" for path in found.requested) <= 2 * 100
    assert any(each.startswith("a window: ") for each in found.infos["/opens"]["refused"])
    assert any(each.startswith("navigation: ") for each in found.infos["/goes"]["refused"])
    # Beyond its bytes, a page gets nothing, and the index says so.
    (large,) = [row for row in found.captures if row["url"].endswith("/large")]
    assert large["truncated"] == "length"
    assert large["body_length"] <= 2 << 20


def test_pages_that_go_on_are_left_when_their_time_is_up_and_the_crawl_goes_on(tmp_path: Path) -> None:
    found = crawled(GOING_ON, tmp_path, page_time=15)
    # What never gets quiet is read all the same.
    assert found.infos["/restless"]["title"] == "restless"
    # Beyond its requests and its bytes, a page gets nothing, and the index says so. A page whose browser
    # another one has taken down is opened again, with the same limits.
    assert found.requested.count("/n") <= MOST_OPENED * REQUESTS
    reasons = [row["error"] for row in found.captures if row["page"].endswith("/many")]
    assert sum(f"requested {REQUESTS} before" in each for each in reasons) > 0
    assert len(reasons) <= 2 * REQUESTS * MOST_OPENED + 1
    assert 1 <= found.requested.count("/up") <= MOST_OPENED
    sent = [row["error"] for row in found.captures if row["url"].endswith("/up")]
    assert any("sent and received" in each for each in sent)
