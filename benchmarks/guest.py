"""What a page costs a Scrapy project, without the add-on and with it.

    python -m benchmarks.guest [--pages 3000] [--rounds 3]

An ordinary spider, run by `scrapy runspider`, fetches pages of 26 KB from a server in this process and
yields an item for each. Counted are CPU seconds of its process, user and system, less those of a run
over one page; the two are run in turn. The archive is part of the second: WARC, index, compression.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPIDER = """
import scrapy

class BenchmarkSpider(scrapy.Spider):
    name = "benchmark"

    async def start(self):
        for number in range(int(self.pages)):
            yield scrapy.Request(f"{self.site}/{number}")

    def parse(self, response):
        yield {"title": response.css("title::text").get(), "links": len(response.css("a"))}
"""
LINE = {
    "ADDONS": '{"amicrawl.crawl.addon.ArchiveAddon": 300}',
    "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
}
TARGET = 0.75


class _Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # the name is the library's
        """Respond with a page that differs from all others."""
        words = " ".join(f"{self.path}.{n * n}" for n in range(2500))
        links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(60))
        body = f"<html><title>{self.path}</title>{links}<p>{words}"[: 26 * 1024].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def cpu_seconds(site: str, pages: int, settings: dict[str, str]) -> float:
    """Return the CPU seconds of one run over *pages* pages."""
    with tempfile.TemporaryDirectory(prefix="guest-benchmark-") as scratch:
        spider = Path(scratch) / "spider.py"
        spider.write_text(SPIDER)
        line = [sys.executable, "-m", "scrapy", "runspider", str(spider)]
        line += ["-a", f"site={site}", "-a", f"pages={pages}", "-s", "LOG_LEVEL=INFO"]
        line += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*line, "-o", "items.jsonl"],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if f"'item_scraped_count': {pages}" not in done.stderr:
            raise SystemExit(f"Not all pages were scraped:\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, and print a line for each and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_address[1]}"
    costs: dict[str, list[float]] = {"plain": [], "with the add-on": []}
    for _ in range(given.rounds):
        for name, settings in (("plain", {}), ("with the add-on", LINE)):
            start = cpu_seconds(site, 1, settings)
            costs[name].append((cpu_seconds(site, given.pages + 1, settings) - start) / given.pages)
    server.shutdown()
    middle = {name: statistics.median(each) for name, each in costs.items()}
    for name, cost in middle.items():
        print(f"{name:16} {cost * 1e6:7.0f} us of CPU a page")
    ratio = middle["with the add-on"] / middle["plain"]
    print(f"{'ratio':16} {ratio:7.2f} (to be at most {TARGET})")


if __name__ == "__main__":
    main()
