"""Whole crawls of sites that scripts make, in a real Chromium."""

import contextlib
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import warm_processes
from archive_reading import record, records, rows
from browser.browsing_site import (
    SETTINGS,
    SecuredServer,
    chunked,
    crawl_pages,
    needs_chromium,
    path_of,
    response,
)
from loopback import (
    PROJECT,
    QUICK,
    RawServer,
    environment,
    free_port,
    recrawl,
    site_command,
    write_lines,
)
from typer.testing import CliRunner

from amicrawl.cli import app as app_of_commands
from amicrawl.errors import ExitCode

pytestmark = needs_chromium

APP = b"""document.title = "Made";
fetch("/api" + location.pathname).then((found) => found.json()).then((data) => {
  document.getElementById("root").innerHTML =
    "<h1>" + data.title + "</h1>" + data.links.map((to) => `<a href="${to}">${to}</a>`).join(" ");
});
fetch("/search", {method: "POST", body: "q=1"});
"""
SHELL = (
    b"<!doctype html><link rel=stylesheet href=/app.css><div id=root></div><script src=/app.js></script>"
)
LINKS = {"/": ["/a", "/b"], "/a": ["/c"]}


def app(head: bytes) -> bytes:
    path = path_of(head)
    if path == "/app.js":
        packed = gzip.compress(APP, mtime=0)
        return response(packed, "text/javascript", "Content-Encoding: gzip")
    if path == "/app.css":
        return response(b"h1 { color: red }", "text/css")
    if path.startswith("/api"):
        page = path.removeprefix("/api")
        data = {"title": f"Page {page}", "links": LINKS.get(page, ["/"])}
        return chunked(json.dumps(data).encode(), "application/json")
    if path == "/search":
        return response(b'{"found": 0}', "application/json")
    if path in {"/", "/a", "/b", "/c"}:
        return response(SHELL)
    return response(b"none", "text/plain", status="404 Not Found")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawServer, Path, list[str]]]:
    """A site made by scripts, still served, the directory of its crawl, and the paths that it took."""
    out = tmp_path_factory.mktemp("crawled") / "out"
    with RawServer(app) as server:
        done = crawl_pages(f"{server.url}/", out)
        assert done.returncode == 0, done.stderr
        yield server, out, [path_of(head) for head in server.requests]


def test_a_site_made_by_scripts_is_archived_to_the_byte(
    crawled: tuple[RawServer, Path, list[str]], tmp_path: Path
) -> None:
    server, out, requested = crawled
    # The first of each URL: the same payload later is a revisit.
    found = {row["url"].removeprefix(server.url): row for row in reversed(rows(out))}
    # Links come from what scripts have made; a requisite is requested once, whatever number of pages.
    assert {"/", "/a", "/b", "/c", "/api/c", "/search"} <= found.keys()
    assert requested.count("/app.js") == requested.count("/app.css") == requested.count("/a") == 1
    assert requested.count("/search") == 4
    # The record has the server's bytes: case, framing and coding.
    for path in ("/", "/app.js", "/api/c", "/search"):
        _, block = record(out, found[path])
        request = f"GET {path} HTTP/1.1\r\n\r\n".encode()
        assert block == app(request)
    for url, said in (
        ("/c", "opened in a browser: AMICRAWL_BROWSER is always"),
        ("/app.js", f"requested in a browser by {server.url}/ (script)"),
    ):
        line = ["explain", server.url + url, "--dir", str(out)]
        assert said in CliRunner().invoke(app_of_commands, line, catch_exceptions=False).output
    package = tmp_path / "site.wacz"
    warc_files = [str(path) for path in out.glob("*.warc.gz")]
    packed = warm_processes.run(
        [sys.executable, "-m", "amicrawl", "wacz", *warc_files, "-o", str(package)],
        cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert packed.returncode == 0, packed.stderr
    listed = zipfile.ZipFile(package).read("pages/pages.jsonl").splitlines()[1:]
    pages = {each["url"].removeprefix(server.url): each for each in map(json.loads, listed)}
    assert pages.keys() == {"/", "/a", "/b", "/c"}
    assert (pages["/c"]["title"], pages["/c"]["text"]) == ("Made", "Page /c\n/")
    script, page = found["/app.js"], found["/c"]
    assert (script["page"], script["resource_type"]) == (f"{server.url}/", "script")
    assert (page["page"], page["resource_type"]) == (f"{server.url}/c", "document")
    assert (page["via"], page["link"], page["hops"]) == (f"{server.url}/a", "link", 2)
    kinds = {each["resource_type"] for url, each in found.items() if url.startswith(("/api", "/search"))}
    assert kinds == {"fetch"}
    # The body of a POST is in its request record; no record shows what signs in to the proxy.
    whole = [(each.rec_headers, each.content_stream().read()) for each in records(out)]
    requests = [block for fields, block in whole if fields["WARC-Type"] == "request"]
    (search, *_) = [block for block in requests if block.startswith(b"POST /search ")]
    assert search.endswith(b"\r\n\r\nq=1")
    assert not any(b"proxy-" in block.lower() for block in requests)
    made = {
        fields["WARC-Target-URI"]: block for fields, block in whole if fields["WARC-Type"] == "resource"
    }
    assert made[f"urn:text:{server.url}/c"] == b"Made\n\nPage /c\n/"
    assert made[f"urn:screenshot:{server.url}/c"].startswith(b"\xff\xd8\xff")
    info = json.loads(made[f"urn:pageinfo:{server.url}/c"])
    # What it had from the archive is named there, too.
    assert info["urls"][f"{server.url}/app.js"] == {"status": 200}
    assert info["ended"] == "quiet"


def test_a_recrawl_requests_requisites_again_and_once(
    crawled: tuple[RawServer, Path, list[str]], tmp_path: Path
) -> None:
    server, out, _ = crawled
    again = shutil.copytree(out, tmp_path / "again")
    before = len(server.requests)
    done = recrawl(again, arguments=["before=9999-01-01"], settings=SETTINGS)
    requested = [path_of(head) for head in server.requests[before:]]
    assert done.returncode == 0, done.stderr
    assert requested.count("/") == requested.count("/app.js") == requested.count("/app.css") == 1


def test_without_a_browser_a_crawl_ends_before_anything_is_requested(tmp_path: Path) -> None:
    with RawServer(app) as server:
        missing = crawl_pages(f"{server.url}/", tmp_path / "a", {"AMICRAWL_BROWSER_PATH": "/nowhere"})
        as_root = crawl_pages(f"{server.url}/", tmp_path / "b", {"AMICRAWL_BROWSER_SANDBOX": "true"})
    assert (missing.returncode, server.requests) == (2, [])
    assert "AMICRAWL_BROWSER_PATH is '/nowhere'" in missing.stderr
    assert not (tmp_path / "a").exists()
    if os.geteuid() == 0:
        assert (as_root.returncode, server.requests) == (2, [])
        assert "AMICRAWL_BROWSER_SANDBOX=false" in as_root.stderr


def test_rules_of_the_crawl_hold_for_what_a_page_requests(tmp_path: Path) -> None:
    other = free_port()
    wanted = [
        "/no/robots", "/ignored.json", f"http://10.1.2.3:{other}/private", f"http://[::1]:{other}/",
        "file:///etc/passwd",
    ]  # fmt: skip
    script = "".join(f"fetch({url!r}).catch(() => 0); " for url in wanted)
    script += "new WebSocket('ws://' + location.host + '/socket');"
    script += "fetch('/much', {method: 'POST', body: new Uint8Array(17 << 20)});"

    def site(head: bytes) -> bytes:
        path = path_of(head)
        if path == "/robots.txt":
            return response(b"User-agent: *\nDisallow: /no/\n", "text/plain")
        return response(b"<p>text<script>" + script.encode() + b"</script>")

    with RawServer(site) as server:
        done = crawl_pages(
            f"{server.url}/", tmp_path,
            {"AMICRAWL_ROBOTS": "obey", "AMICRAWL_IGNORES": "ignored", "AMICRAWL_MAX_RETRIES": "0"},
        )  # fmt: skip
        requested = {path_of(head) for head in server.requests}
    assert done.returncode == 0, done.stderr
    assert requested == {"/robots.txt", "/", "/favicon.ico"}
    said = {row["url"]: row["error"] for row in rows(tmp_path) if not row["status"]}
    assert said[f"{server.url}/no/robots"].startswith("robots-denied")
    assert "ignored" in said[f"{server.url}/ignored.json"]
    assert said[f"http://10.1.2.3:{other}/private"].startswith("address-refused")
    assert said[f"http://[::1]:{other}/"].startswith("address-refused")
    assert "WebSocket" in said[f"{server.url}/socket"]
    assert "its body is longer" in said[f"{server.url}/much"]
    assert all(
        row["page"]
        for row in rows(tmp_path)
        if not row["status"] and not row["url"].endswith("/robots.txt")
    )


def test_a_killed_crawl_goes_on_and_requests_again_no_more_than_was_in_flight(tmp_path: Path) -> None:
    with RawServer(app, pause=0.05) as server:
        line = site_command(f"{server.url}/", tmp_path, settings=SETTINGS)
        process = warm_processes.Popen(line, cwd=PROJECT, env=environment(), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while "/a" not in {path_of(head) for head in server.requests} and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = crawl_pages(f"{server.url}/", tmp_path)
        requested = [path_of(head) for head in server.requests]
    assert done.returncode == 0, done.stderr
    assert {"/", "/a", "/b", "/c"} <= {row["url"].removeprefix(server.url) for row in rows(tmp_path)}
    assert requested.count("/") == requested.count("/b") == requested.count("/c") == 1
    assert requested.count("/a") == 2
    # A requisite that is in the archive is not requested again.
    assert requested.count("/app.js") == requested.count("/app.css") == 1
    infos = [
        json.loads(each.content_stream().read())
        for each in records(tmp_path)
        if each.rec_headers["WARC-Target-URI"] == f"urn:pageinfo:{server.url}/c"
    ]
    assert infos[0]["urls"][f"{server.url}/app.js"] == {"status": 200}
    assert infos[0]["title"] == "Made"


def test_processes_of_a_crawl_share_what_is_archived(tmp_path: Path) -> None:
    out, hosts = tmp_path / "out", [f"127.0.0.{number}" for number in range(1, 6)]

    def is_noted() -> bool:
        return any(b"/app.js" in path.read_bytes() for path in out.glob("processes/*/captures-*.open"))

    def site(head: bytes) -> bytes:
        if path_of(head) == "/app.js":
            return response(b"document.title = 'Made';", "text/javascript")
        if b"127.0.0.1:" not in head:
            _wait_until(is_noted)
        return response(f"<script src=http://127.0.0.9:{server.port}/app.js></script>".encode())

    with RawServer(site) as server:
        starts = write_lines(tmp_path / "starts", [f"http://{host}:{server.port}/" for host in hosts])
        arguments = [f"file={starts}", f"out={out}", "processes=2"]
        line = [sys.executable, "-m", "scrapy", "crawl", "site"]
        line += [part for each in arguments for part in ("-a", each)]
        line += [f"-s{name}={value}" for name, value in {**QUICK, **SETTINGS}.items()]
        done = warm_processes.run(line, cwd=PROJECT, env=environment(), timeout=120, check=False)
        requested = [path_of(head) for head in server.requests]
    assert done.returncode == 0
    assert (requested.count("/"), requested.count("/app.js")) == (5, 1)
    texts = [
        each.content_stream().read()
        for each in records(out)
        if each.rec_headers.get("WARC-Target-URI", "").startswith("urn:text:")
    ]
    assert texts == [b"Made\n\n"] * 5


def test_a_secured_site_is_archived_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, out = tmp_path / "authority.pem", tmp_path / "out"
    with SecuredServer(app, authority) as server:
        refused = crawl_pages(f"{server.url}/", tmp_path / "refused")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        done = crawl_pages(f"{server.url}/", out)
        requested = [path_of(head) for head in server.requests]
    # Chromium takes the certificate of the proxy; the server's is checked all the same.
    (row,) = rows(tmp_path / "refused")
    assert row["error"].startswith("tls-certificate"), refused.stderr
    assert done.returncode == 0, done.stderr
    found = {row["url"].removeprefix(server.url): row for row in reversed(rows(out))}
    assert {"/", "/a", "/b", "/c", "/api/c", "/search", "/app.js"} <= found.keys()
    assert requested.count("/app.js") == requested.count("/c") == 1
    fields, block = record(out, found["/api/c"])
    assert block == app(b"GET /api/c HTTP/1.1\r\n\r\n")
    assert "tls/1.3" in fields["WARC-Protocol"]


def test_a_video_is_fetched_once_and_played_by_its_ranges(tmp_path: Path) -> None:
    film = bytes(range(256)) * 4096
    script = b"""<p id=p>no</p><script>
      fetch("/film", {headers: {Range: "bytes=1000-1999"}}).then(async (found) => {
        const first = await found.arrayBuffer();
        const rest = await (await fetch("/film", {headers: {Range: "bytes=1048000-"}})).arrayBuffer();
        p.innerText = [found.status, found.headers.get("Content-Range"), first.byteLength,
                       new Uint8Array(first)[1], rest.byteLength].join(" ");
      });</script>"""

    def site(head: bytes) -> bytes:
        return response(film, "video/mp4") if path_of(head) == "/film" else response(script)

    with RawServer(site) as server:
        done = crawl_pages(f"{server.url}/", tmp_path)
        films = [head for head in server.requests if path_of(head) == "/film"]
    assert done.returncode == 0, done.stderr
    assert len(films) == 1
    assert b"range" not in films[0].lower()
    texts = [
        each.content_stream().read()
        for each in records(tmp_path)
        if each.rec_headers["WARC-Target-URI"] == f"urn:text:{server.url}/"
    ]
    assert texts == [b"\n\n206 bytes 1000-1999/1048576 1000 233 576"]
    (row,) = (row for row in rows(tmp_path) if row["url"].endswith("/film"))
    assert (row["status"], row["body_length"]) == (200, len(film))


def test_a_browser_that_is_killed_is_replaced_and_its_page_opened_once_more(tmp_path: Path) -> None:
    with RawServer(app, pause=0.1) as server:
        line = site_command(f"{server.url}/", tmp_path, settings=SETTINGS)
        process = warm_processes.Popen(line, cwd=PROJECT, env=environment(), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while (
            "/api/a" not in {path_of(head) for head in server.requests} and time.monotonic() < deadline
        ):
            time.sleep(0.02)
        for each in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "--user-data-dir" in " ".join(each.cmdline()):
                    each.kill()
        assert process.wait(timeout=100) == 0
        requested = [path_of(head) for head in server.requests]
    texts = {
        each.rec_headers["WARC-Target-URI"].removeprefix(f"urn:text:{server.url}")
        for each in records(tmp_path)
        if each.rec_headers["WARC-Type"] == "resource"
    }
    assert {"/", "/a", "/b", "/c"} <= texts
    assert requested.count("/a") == 1
    assert requested.count("/api/a") == 2


def test_auto_opens_what_has_nothing_to_show_without_scripts(tmp_path: Path) -> None:
    def site(head: bytes) -> bytes:
        if path_of(head) == "/":
            links = "".join(f"<p>A page with text of its own: <a href=/{n}>{n}</a>" for n in "abc")
            return response(f"<title>start</title>{links}<script src=/app.js></script>".encode())
        return app(head)

    with RawServer(site) as server:
        done = crawl_pages(f"{server.url}/", tmp_path, {"AMICRAWL_BROWSER": "auto"})
    assert done.returncode == 0, done.stderr
    pages = {row["url"].removeprefix(server.url): row["page"] for row in rows(tmp_path)}
    assert pages["/"] == ""
    assert pages["/a"] == f"{server.url}/a"
    assert pages["/api/a"] == f"{server.url}/a"
    assert "/api/" not in pages


def test_pages_that_wait_for_the_browser_when_a_crawl_is_paused_are_opened_by_the_next(
    tmp_path: Path,
) -> None:
    step = b"<p>text<script>let n = 0; setInterval(() => n++ < 9 && fetch('/api/' + n), 200)</script>"

    def site(head: bytes) -> bytes:
        if path_of(head) == "/":
            return response("".join(f"<a href=/p{n}>{n}</a>" for n in range(5)).encode())
        return response(step if path_of(head).startswith("/p") else b"{}")

    settings = {**SETTINGS, "AMICRAWL_BROWSER_PAGES": "1", "AMICRAWL_PER_HOST": "8"}
    status = tmp_path / "control" / "status.json"
    with RawServer(site) as server:

        def requested() -> list[str]:
            return [path for path in map(path_of, server.requests) if path.startswith("/p")]

        line = site_command(f"{server.url}/", tmp_path, settings=settings)
        process = warm_processes.Popen(line, cwd=PROJECT, env=environment(), stderr=subprocess.DEVNULL)
        _wait_until(requested)
        (tmp_path / "control" / "pause").touch()
        _wait_until(lambda: json.loads(status.read_bytes())["state"] == "paused")
        before = len(requested())
        process.terminate()
        assert process.wait(timeout=100) == ExitCode.STOPPED
        assert len(requested()) <= before + 1
        (tmp_path / "control" / "pause").unlink()
        done = crawl_pages(f"{server.url}/", tmp_path, settings)
        assert done.returncode == 0, done.stderr
        assert sorted(requested()) == [f"/p{n}" for n in range(5)]
    # What was open had all that it requested.
    assert not [row["error"] for row in rows(tmp_path) if "/api/" in row["url"] and not row["status"]]


def _wait_until(condition: Callable[[], object]) -> None:
    """Wait for *condition*, not for ever."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
