"""Whether two states of the code archive the same: five kinds of crawl, compared record by record.

    python -m benchmarks.same_archive --root OTHER_CHECKOUT [--only list site recrawl guest job]

A list, a site, a second crawl of the list, a spider of another project, and a job of a pipeline are run
with the code of each checkout against one server in this process, whose pages are a pure function of
their URLs: redirects, faults, codings, chunks, pages made by scripts. What differs between any two runs
is left out: moments, durations, identifiers, and places in files. Both are run with this environment.
Needs redis-server. Ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from warcio.archiveiterator import ArchiveIterator

from benchmarks.crawlers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

_PORT, _REDIS_PORT = 28765, 28766
_SITE = f"http://127.0.0.1:{_PORT}"
_PAGES = 200
_SETTINGS = {
    "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
    "AMICRAWL_DELAY": "0",
    "AMICRAWL_ADDRESS_DELAY": "0",
    "AMICRAWL_PER_HOST": "1",  # one after the other: which of two equal payloads is first is the same
    "AMICRAWL_OPERATOR": "benchmark@example.org",
}
_OF_ONE_RUN = frozenset({
    *("WARC-Date", "WARC-Record-ID", "WARC-Concurrent-To", "WARC-Filename", "WARC-Warcinfo-ID"),
    *("WARC-Refers-To", "WARC-Refers-To-Date"),
})  # fmt: skip
_COLUMNS_OF_ONE_RUN = frozenset({
    *("fetched_at", "ttfb_ms", "duration_ms", "original_at"),
    *("record_id", "warc_file", "warc_offset", "warc_length"),
})  # fmt: skip
_SPIDER = """
import scrapy

class Guest(scrapy.Spider):
    name = "guest"
    custom_settings = {"ADDONS": {"amicrawl.crawl.addon.ArchiveAddon": 300}, "CONCURRENT_REQUESTS": 1,
                       "RETRY_ENABLED": False, "HTTPERROR_ALLOW_ALL": True, "ROBOTSTXT_OBEY": True}

    async def start(self):
        for number in range(0, 200, 2):
            yield scrapy.Request(f"{self.site}/p{number}.html")

    def parse(self, response):
        for link in response.css("a::attr(href)").getall()[:1]:
            yield response.follow(link, priority=-1)
"""


class _Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # the name is the library's
        """Respond with what the number in the path stands for."""
        number = int("".join(filter(str.isdigit, self.path)) or 0)
        status, fields, body = _response(self.path, number)
        if self.headers.get("If-None-Match") == fields["ETag"] and status == 200:
            status, body = 304, b""
        is_chunked = number % 4 == 1 and status != 304
        self.send_response_only(status)  # no Date: it would differ
        for name, value in fields.items():
            self.send_header(name, value)
        if is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        elif status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _response(path: str, number: int) -> tuple[int, dict[str, str], bytes]:
    """Return status, fields and body of *path*, which has this *number* in it."""
    fields = {"Content-Type": "text/html; charset=utf-8", "ETag": f'"x{path}"'}
    if path == "/robots.txt":
        return 200, fields | {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /no\n"
    if path.startswith("/s.js"):
        return 200, fields | {"Content-Type": "text/javascript"}, b'import "./t.js"'
    links = "".join(
        f'<a href="/p{m}.html">{m}</a><img src=/i{m % 5}.png>'
        for m in range(2 * number + 1, 2 * number + 4)
        if m < _PAGES
    )
    page = f"{links}<a href=/no/x>n</a><a href=/cal/2024/{number % 12 + 1:02}/>c</a>{'text ' * 500}"
    latin = {"Content-Type": "text/html; charset=iso-8859-1", "Content-Encoding": "gzip"}
    special: dict[int, tuple[int, dict[str, str], bytes]] = {
        3: (404, {}, b"<p>gone</p>"),
        5: (302, {"Location": f"/p{number + 1}.html"}, b""),
        7: (200, {}, b"<html><p>the same for all</p></html>"),
        9: (
            200,
            latin,
            gzip.compress(b"<a href=/p%d.html>\xe9</a>" % (number + 2), mtime=0),
        ),
        11: (200, {}, b"<script src=/s.js></script><div id=root></div>"),
        13: (503, {"Retry-After": "0"}, b"busy"),
    }
    status, more, body = special.get(number % 17, (200, {}, page.encode()))
    return status, fields | more, body


def _run(root: Path, words: list[str], work: Path, **more: str) -> None:
    """Run a command with the code in *root*; ends the program where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "0", **more}
    done = subprocess.run(  # noqa: PLW1510  # the code is looked at
        [sys.executable, "-P", "-m", *words], env=environment, cwd=work, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stderr[-2000:]}")


def _options() -> list[str]:
    return [word for name, value in _SETTINGS.items() for word in ("-s", f"{name}={value}")]


def _list(root: Path, work: Path) -> Path:
    (work / "urls.txt").write_text("".join(f"{_SITE}/p{n}.html\n" for n in range(_PAGES)))
    _run(root, ["amicrawl", "crawl", "urls.txt", "-o", "list", *_options()], work)
    return work / "list"


def _site(root: Path, work: Path) -> Path:
    _run(root, ["amicrawl", "crawl", f"{_SITE}/p0.html", "-o", "site", *_options()], work)
    return work / "site"


def _recrawl(root: Path, work: Path) -> Path:
    if not (work / "list").exists():
        _list(root, work)
    _run(root, ["amicrawl", "recrawl", "list", "--all", *_options()], work)
    return work / "list"


def _guest(root: Path, work: Path) -> Path:
    (work / "guest.py").write_text(_SPIDER)
    _run(
        root,
        [
            "scrapy",
            "runspider",
            "guest.py",
            "-a",
            f"site={_SITE}",
            "-s",
            "AMICRAWL_OUT=guest",
            *_options(),
        ],
        work,
    )
    return work / "guest"


def _job(root: Path, work: Path) -> Path:
    redis_server = subprocess.Popen(
        ["redis-server", "--port", str(_REDIS_PORT), "--save", "", "--dir", str(work)],
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(1)
        url = f"redis://127.0.0.1:{_REDIS_PORT}/0"
        submit = ["amicrawl", "job", "submit", f"{_SITE}/p0.html", "--concurrency", "1", "--delay", "0"]
        _run(root, submit, work, REDIS_URL=url)
        _pipeline(root, work, url)
    finally:
        redis_server.terminate()
        redis_server.wait()
    return next(work.glob("data/**/captures.parquet")).parent


def _pipeline(root: Path, work: Path, url: str) -> None:
    """Run a pipeline until it has ended its first job."""
    command = [sys.executable, "-P", "-m", "amicrawl", "pipeline", "--data", "data", *_options()]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "0", "REDIS_URL": url}
    log = work / "pipeline.txt"
    pipeline = subprocess.Popen(command, env=environment, cwd=work, stderr=log.open("wb"))
    while not [*work.glob("data/*.json")]:
        if pipeline.poll() is not None:
            sys.exit(f"The pipeline ended with {pipeline.returncode}:\n{log.read_text()[-2000:]}")
        time.sleep(0.2)
    pipeline.terminate()
    pipeline.wait()


_CRAWLS: dict[str, Callable[[Path, Path], Path]] = {
    "list": _list,
    "site": _site,
    "recrawl": _recrawl,
    "guest": _guest,
    "job": _job,
}


def _records(directory: Path) -> list[Any]:
    """Return the records in *directory* without what is of one run only, in an order of their own."""
    found = []
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                fields = [pair for pair in record.rec_headers.headers if pair[0] not in _OF_ONE_RUN]
                block = record.raw_stream.read()
                if record.rec_type != "warcinfo":
                    found.append((record.rec_type, fields, block))
    return sorted(found, key=repr)


def _rows(directory: Path) -> list[Any]:
    """Return the rows of the index in *directory* without what is of one run only."""
    rows = pq.read_table(directory / "captures.parquet").to_pylist()
    kept = [{k: v for k, v in row.items() if k not in _COLUMNS_OF_ONE_RUN} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def _is_same(what: str, ours: list[Any], theirs: list[Any]) -> bool:
    """Print how many there are of *what*, and the first that differs; return whether all are equal."""
    print(f"{what}: {len(ours):,} and {len(theirs):,}, {'equal' if ours == theirs else 'DIFFERENT'}")
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            print(f"  {one!r:.600}\n  {other!r:.600}")
            break
    return ours == theirs


def main() -> None:
    """Run the crawls with both checkouts and compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_archive")
    parser.add_argument("--root", type=Path, required=True, help="the other checkout")
    parser.add_argument("--only", nargs="*", choices=_CRAWLS, default=list(_CRAWLS))
    requested = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", _PORT), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    are_same = []
    with tempfile.TemporaryDirectory(prefix="amicrawl-same-archive-") as place:
        for name in requested.only:
            directories = []
            for which, root in (("ours", ROOT), ("other", requested.root.resolve())):
                work = Path(place) / which
                work.mkdir(exist_ok=True)
                directories.append(_CRAWLS[name](root, work))
            for what, read in (("records", _records), ("rows", _rows)):
                are_same.append(_is_same(f"{name}, {what}", *map(read, directories)))
    sys.exit(0 if all(are_same) else 1)


if __name__ == "__main__":
    main()
