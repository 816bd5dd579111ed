"""What a collection costs: `python -m benchmarks.analytics_collection`.

Two things. How much memory sorting, merging and the table take, for few lines and for many: it must
not grow with them. And how many pages a second one reading of a WARC file makes products of, for
each product alone and for all of them; `--tree PATH` does so with real files. Every step runs in a
process of its own; the memory is that of the largest process of the step, workers included.
"""

from __future__ import annotations

import argparse
import gzip
import json
import mimetypes
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from amicrawl.archive.index.collection.file import collect_file
from amicrawl.archive.index.collection.products import PRODUCTS as _KINDS
from amicrawl.archive.index.collection.products import FileJob
from amicrawl.archive.index.merging.merge import merge
from amicrawl.archive.lines.sorting import external_sort, write_lines
from amicrawl.archive.table.builder import make_table
from amicrawl.disk import Disk
from benchmarks.measure import run
from benchmarks.pages import Pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
OUT = ROOT / "benchmarks" / "out"
LINES = (10_000, 1_000_000)
PAGES = 2_000
STEPS = ("sort", "merge", "merge_any_order", "table")
PRODUCTS = ("cdxj", "sidecar", "merged", "wat", "wet", "cdxj,sidecar,merged,wat,wet,table,summary")
ROUNDS = 3
_TIMEOUT = 3600.0


def main() -> None:
    """Measure, print, and write analytics-collection.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, nargs="*", default=list(LINES))
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--tree", type=Path, help="measure a collection of the files below it instead")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--at", type=Path, help=argparse.SUPPRESS)
    requested = parser.parse_args()
    if requested.step:
        _STEPS[requested.step](requested.at, requested.lines[0] if requested.lines else requested.pages)
        return
    with tempfile.TemporaryDirectory(prefix="analytics-") as name:
        if requested.tree is not None:
            print(json.dumps(_of_tree(Path(name), requested.tree, requested.pages), indent=1))
            return
        found = {
            "memory": _memory(Path(name), requested.lines),
            "collection": _collection(Path(name), requested.pages),
        }
    OUT.mkdir(exist_ok=True)
    (OUT / "analytics-collection.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def _memory(directory: Path, sizes: list[int]) -> list[dict[str, Any]]:
    found = []
    for lines in sizes:
        at = directory / str(lines)
        at.mkdir()
        _measured(["--step", "lines", "--at", str(at), "--lines", str(lines)], at)
        found += [
            {
                "lines": lines,
                "step": step,
                **_measured(["--step", step, "--at", str(at), "--lines", str(lines)], at),
            }
            for step in STEPS
        ]
    return found


def _collection(directory: Path, pages: int) -> list[dict[str, Any]]:
    at = directory / "pages"
    at.mkdir()
    _measured(["--step", "pages", "--at", str(at), "--lines", "--pages", str(pages)], at)
    found = []
    for products in PRODUCTS:
        for jobs in (1, 2) if "," in products else (1,):
            out = at / f"{products.replace(',', '-')}-{jobs}"
            command = [str(Path(sys.executable).parent / "amicrawl"), "collection", str(at / "warc")]
            cost = _cost([*command, "-o", str(out), "--products", products, "-j", str(jobs)], at)
            found.append(
                {
                    "products": products,
                    "jobs": jobs,
                    **cost,
                    "pages_per_s": round(pages / cost["wall_s"]),
                    "pages_per_cpu_s": round(pages / cost["cpu_s"]),
                }
            )
    return found


def _of_tree(at: Path, tree: Path, most: int) -> list[dict[str, Any]]:
    """Measure the reading alone, in this process, of real files: up to *most* of those below *tree*."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20)
    random.Random(7).shuffle(files)
    source = at / "tree.warc.gz"
    with source.open("wb") as stream:
        for number, path in enumerate(files[:most]):
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
            url = f"http://example.org/{path.relative_to(tree).as_posix()}"
            stream.write(_member(number, quote(url, safe=":/"), head + path.read_bytes()))
    found = []
    for products in [*PRODUCTS[:-1], "wat,wet", PRODUCTS[-1].removesuffix(",table,summary")]:
        took = []
        for _ in range(ROUNDS):
            out = Path(tempfile.mkdtemp(dir=at))
            (out / "done").mkdir()
            for made in _KINDS.values():
                (out / made.directory).mkdir()
            job = FileJob(source, "tree.warc", out, tuple(products.split(",")), source.name)
            began = time.process_time()
            outcome = collect_file(job, lambda _: None)
            took.append((time.process_time() - began) / outcome.records * 1000)
        found.append({"products": products, "ms_a_capture": round(min(took), 2)})
    return [{"files": len(files[:most]), "bytes": sum(p.stat().st_size for p in files[:most])}, *found]


def _measured(arguments: list[str], at: Path) -> dict[str, Any]:
    return _cost([sys.executable, "-m", "benchmarks.analytics_collection", *arguments], at)


def _cost(command: list[str], at: Path) -> dict[str, Any]:
    cost = run(command, cwd=ROOT, env=os.environ, log=at / "log", timeout=_TIMEOUT)
    if cost.exit_code:
        raise SystemExit(f"{command} failed: {(at / 'log').read_text()[-2000:]}")
    return {
        "wall_s": round(cost.wall_s, 2),
        "cpu_s": round(cost.cpu_s, 2),
        "peak_rss_mb": round(cost.peak_rss_bytes / 1e6),
    }


def _write_lines(at: Path, count: int) -> None:
    """Write lines in any order, and what a sidecar says of half of them."""
    with (at / "unsorted.cdxj").open("wb") as lines, (at / "side.cdxj").open("wb") as side:
        for line, said in _lines(count):
            lines.write(line)
            if said:
                side.write(said)


def _lines(count: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield lines in no order, spread over the keys, and of every other what a sidecar says of it."""
    for number in range(count):
        # Multiples of a large odd number go through all others in what looks like no order.
        mixed = number * 0x9E3779B97F4A7C15 % 2**64
        host, page = mixed >> 50, mixed % 10**9
        head = f"org,example,host{host})/dir/page-{page}.html?q={number} 2024{_second(mixed)} "
        fields = (
            f'{{"url": "https://host{host}.example.org/dir/page-{page}.html?q={number}", '
            f'"mime": "text/html", "status": "200", "digest": "{mixed:032X}", '
            f'"length": "{500 + mixed % 60_000}", "offset": "{number * 30_000}", '
            f'"filename": "crawl-data/EOT-2024/segments/A-000/warc/x-{number // 50_000}.warc.gz"'
        )
        identity = f'"recordid": "{mixed % 2**32:08x}-0000-4000-8000-{number:012x}"}}\n'
        said = ""
        if number % 2:
            said = (
                f'{head}{{"Identified-Payload-Type": '
                '{"fido": "text/html", "python-magic": "text/html"}, '
                '"Preservation-Identifier": "fmt/471", '
                '"Charset-Detected": {"encoding": "utf-8", "confidence": 0.99}, '
                f'"Languages-cld2": {{"reliable": true, "text-bytes": {mixed % 60_000}, '
                '"languages": [{"name": "ENGLISH", "code": "en"}]}, '
                f'"Soft-404-Detected": 0.{mixed % 9999:04d}1, {identity}'
            )
        yield f"{head}{fields}, {identity}".encode(), said.encode()


def _second(mixed: int) -> str:
    second = mixed >> 20
    return (
        f"{second % 12 + 1:02}{second % 28 + 1:02}{second % 24:02}{second // 24 % 60:02}"
        f"{second // 1440 % 60:02}"
    )


def _sort(at: Path, _: int) -> None:
    for name, target in (("unsorted.cdxj", "index/x.cdxj"), ("side.cdxj", "side/x.cdxj")):
        (at / target).parent.mkdir(exist_ok=True)
        with (at / name).open("rb") as lines:
            write_lines(external_sort(lines, scratch=at), at / target, disk=Disk())


def _merge(at: Path, _: int) -> None:
    (at / "merged").mkdir(exist_ok=True)
    merge([at / "index/x.cdxj"], [at / "side/x.cdxj"], at / "merged", processes=1)


def _merge_any_order(at: Path, _: int) -> None:
    (at / "merged_aside").mkdir(exist_ok=True)
    merge([at / "index/x.cdxj"], [at / "side.cdxj"], at / "merged_aside", processes=1)


def _table(at: Path, lines: int) -> None:
    report = make_table(sorted((at / "merged").iterdir()), at / "table", disk=Disk())
    if report.rows != lines:
        raise SystemExit(f"{report.rows} rows of {lines} lines: {report}")


def _write_pages(at: Path, count: int) -> None:
    pages = Pages()
    (at / "warc").mkdir()
    for part in range(4):
        with (at / "warc" / f"{part}.warc.gz").open("wb") as stream:
            for number in range(part, count, 4):
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
                block = head + pages.page(number)
                stream.write(_member(number, f"http://h{number % 50}.example.org/page/{number}", block))


def _member(number: int, url: str, block: bytes) -> bytes:
    """Return a response record for *url* as a gzip member."""
    fields = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:test:{number}>\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Date: 2024-06-30T20:48:00Z\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(fields.encode() + block + b"\r\n\r\n", 6)


_STEPS: dict[str, Callable[[Path, int], None]] = {
    "lines": _write_lines,
    "sort": _sort,
    "merge": _merge,
    "merge_any_order": _merge_any_order,
    "table": _table,
    "pages": _write_pages,
}

if __name__ == "__main__":
    main()
