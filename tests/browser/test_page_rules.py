"""The rules of pages: pace, limits of hosts, behaviours, and what one page has of another."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import TYPE_CHECKING

from archive_reading import records, rows
from browser.browsing_site import crawl_pages, needs_chromium, path_of, response
from loopback import RawServer

if TYPE_CHECKING:
    import socket
    from pathlib import Path

pytestmark = needs_chromium

DELAY = 0.5


def texts(out: Path) -> dict[str, str]:
    """Return what was shown of each page in *out*, by its path."""
    found = {}
    for each in records(out):
        name = each.rec_headers.get("WARC-Target-URI", "")
        if name.startswith("urn:text:"):
            path = "/" + name.split("/", 3)[3]
            found[path] = each.content_stream().read().decode().partition("\n\n")[2]
    return found


def test_a_page_is_one_visit_and_the_next_waits_from_its_last_request(tmp_path: Path) -> None:
    late = b"""<p id=p></p><a href=/b>b</a><a href=/c>c</a><script>
      p.innerText = document.cookie + localStorage.length;
      document.cookie = "seen=1"; localStorage.seen = 1; caches.open("seen");
      setTimeout(() => fetch("/late" + location.pathname), 300);
      for (const n of [1, 2, 3]) fetch("/data/" + n + location.pathname);</script>"""

    def site(head: bytes) -> bytes:
        return response(late) if path_of(head) in {"/", "/b", "/c"} else response(b"{}", "text/plain")

    settings = {"AMICRAWL_DELAY": str(DELAY), "AMICRAWL_BROWSER_PAGES": "3"}
    with RawServer(site) as server:
        done = crawl_pages(f"{server.url}/", tmp_path, settings)
        arrivals = [(at, path_of(head)) for at, head in server.arrivals]
    assert done.returncode == 0, done.stderr
    documents = [at for at, path in arrivals if path in {"/", "/b", "/c"}]
    assert len(documents) == 3
    for before, after in itertools.pairwise(documents):
        within = [at for at, _ in arrivals if before <= at < after]
        # Its late request is among them, and the delay runs from the last.
        assert len(within) >= 5
        assert after - within[-1] >= DELAY
    # No page has a cookie or a store of another.
    assert {path: shown.split("\n")[0] for path, shown in texts(tmp_path).items()} == dict.fromkeys(
        ("/", "/b", "/c"), "0"
    )


def test_what_a_page_wants_of_another_host_follows_what_that_host_wants(tmp_path: Path) -> None:
    script = """<p>text</p><script>(async () => {
      for (const path of ["/busy", "/after"]) await fetch(OTHER + path, {mode: "no-cors"});
      await Promise.all([1, 2].map((n) => fetch(STRICT + "/" + n, {mode: "no-cors"})));
    })()</script>"""

    def site(head: bytes) -> bytes:
        if path_of(head) == "/busy":
            return response(b"busy", "text/plain", "Retry-After: 1", status="503 Busy")
        if path_of(head) != "/":
            return response(b"{}", "text/plain")
        other, strict = (f"'http://127.0.0.{n}:{server.port}'" for n in (2, 3))
        return response(script.replace("OTHER", other).replace("STRICT", strict).encode())

    settings = {
        "AMICRAWL_DELAY": str(DELAY), "AMICRAWL_BROWSER_STRICT_PACE": "true",
        "AMICRAWL_RETRY_AFTER_MAX": "60",
    }  # fmt: skip
    with RawServer(site) as server:
        done = crawl_pages(f"{server.url}/", tmp_path, settings)
        at = {path_of(head): moment for moment, head in server.arrivals}
    assert done.returncode == 0, done.stderr
    assert at["/after"] - at["/busy"] >= 1
    assert abs(at["/2"] - at["/1"]) >= DELAY


class TrickleServer(RawServer):
    """Does so, but for `/slow`, whose response goes on for as long as the browser wants it."""

    def _serve(self, connection: socket.socket) -> None:
        head = connection.recv(65536)
        self.requests.append(head)
        if path_of(head) != "/slow":
            connection.sendall(self._respond(head))
            return
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
            while True:
                connection.sendall(b"more ")
                time.sleep(0.1)


def test_what_waits_for_the_same_response_is_not_requested_when_its_page_is_over(tmp_path: Path) -> None:
    def site(_: bytes) -> bytes:
        fetched = b"fetch('/slow', {cache: 'no-store'});"
        return response(b"<p>text</p><script>" + 2 * fetched + b"</script>")

    with TrickleServer(site) as server:
        done = crawl_pages(f"{server.url}/", tmp_path, {"AMICRAWL_BROWSER_PAGE_TIME": "4"})
        requested = [path_of(head) for head in server.requests]
    assert done.returncode == 0, done.stderr
    assert requested.count("/slow") == 1
    said = [row["error"] for row in rows(tmp_path) if row["url"].endswith("/slow")]
    assert sorted(said) == ["", "refused-by-crawl: its page was over before"]


def test_a_page_is_read_as_by_a_reader_and_requests_few_from_a_host_at_once(tmp_path: Path) -> None:
    page = b"""<style>p { height: 3000px }</style><p>long</p>
      <img loading=lazy src=/lazy.png><img data-src=/named.png>
      <details><summary>s</summary><img loading=lazy src=/folded.png></details>
      <a href="#/one">one</a><button>Load more</button><form><button>Show more</button></form>
      <script>
        addEventListener("hashchange", () => fetch("/route" + location.hash.slice(1)));
        document.querySelector("button").onclick = (event) => { fetch("/more"); event.target.remove(); };
        document.querySelector("form button").onclick = (event) => {
          event.preventDefault(); fetch("/form");
        };
        new IntersectionObserver((seen, watcher) => {
          if (seen[0].isIntersecting) { watcher.disconnect(); fetch("/end"); }
        }).observe(document.querySelector("form"));
        for (let n = 0; n < 8; n += 1) fetch("/many/" + n);
      </script>"""
    counting, now, most = threading.Lock(), 0, 0

    def site(head: bytes) -> bytes:
        nonlocal now, most
        with counting:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with counting:
            now -= 1
        return response(page) if path_of(head) == "/" else response(b"{}", "text/plain")

    own = tmp_path / "own.js"
    own.write_text("fetch('/own').then(() => 0)")
    settings = {"AMICRAWL_BROWSER_PER_HOST": "2", "AMICRAWL_BROWSER_BEHAVIOURS": str(own)}
    with RawServer(site) as server:
        done = crawl_pages(f"{server.url}/", tmp_path / "out", settings)
        requested = {path_of(head) for head in server.requests}
    assert done.returncode == 0, done.stderr
    wanted = {"/lazy.png", "/named.png", "/folded.png", "/route/one", "/more", "/end", "/own"}
    assert wanted | {f"/many/{n}" for n in range(8)} <= requested
    # What is in a form is for those who fill it in.
    assert "/form" not in requested
    assert most == 2
    assert {row["error"] for row in rows(tmp_path / "out")} == {""}
