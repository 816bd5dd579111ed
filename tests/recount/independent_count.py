"""Count a crawl and what was derived from it again, with warcio and the standard library.

No code of amicrawl is used, so that a fault that writer and readers share is seen. pyarrow reads
Parquet. `python independent_count.py CRAWL COLLECTION CDX WACZ` prints each figure twice: from the
WARC files, and from the product.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from warcio.archiveiterator import ArchiveIterator

if TYPE_CHECKING:
    from collections.abc import Iterator


_MOST_ENTRIES = 20_000


@dataclass(frozen=True, order=True)
class Capture:
    """A response or revisit record, as every index should list it."""

    file: str
    offset: int
    length: int
    url: str
    second: str
    mime: str
    status: str
    digest: str


@dataclass
class Archive:
    """What the WARC files hold."""

    captures: list[Capture] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    """Of all records."""
    types: Counter[str] = field(default_factory=Counter)
    texts: set[str] = field(default_factory=set)
    """Identifiers of responses with a text to read."""
    links: Counter[str] = field(default_factory=Counter)
    """`a` elements with an `href`, by the identifier of their page."""
    payloads: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    """SHA-1 in hex and size of each stored payload, by file and offset of its record."""
    broken: list[str] = field(default_factory=list)
    """Records whose payload has another digest than their header says."""


class _Page(HTMLParser):
    """The text and the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.has_text = False
        self.links = 0
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in {"script", "style"}
        self.links += tag == "a" and any(name == "href" for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"script", "style"} and self._hidden > 0

    def handle_data(self, data: str) -> None:
        self.has_text |= not self._hidden and bool(data.strip())


def read_archive(crawl: Path) -> Archive:
    """Count the WARC files in *crawl*."""
    archive = Archive()
    for path in sorted(crawl.glob("*.warc.gz")):
        with path.open("rb") as stream:
            records = ArchiveIterator(stream)
            for record in records:
                _add(archive, path.name, record, records)
    return archive


def _add(archive: Archive, file: str, record: Any, records: Any) -> None:
    header = record.rec_headers.get_header
    kind, identifier = record.rec_type, header("WARC-Record-ID")
    archive.types[kind] += 1
    archive.identifiers.append(identifier)
    # The place of a record is known once it has been read.
    raw = record.raw_stream.read()
    offset, length = records.get_record_offset(), records.get_record_length()
    if kind not in {"response", "revisit"}:
        return
    mime = (record.http_headers.get_header("Content-Type") or "").partition(";")[0].strip()
    if kind == "response":
        digest = hashlib.sha1(raw)
        archive.payloads[file, offset] = (digest.hexdigest(), len(raw))
        packed = base64.b32encode(digest.digest()).decode()
        if header("WARC-Payload-Digest") != f"sha1:{packed}":
            archive.broken.append(identifier)
        coding = record.http_headers.get_header("Content-Encoding")
        _add_text(archive, identifier, mime, _decoded(raw, coding))
    archive.captures.append(
        Capture(
            file,
            offset,
            length,
            header("WARC-Target-URI"),
            "".join(each for each in header("WARC-Date")[:19] if each.isdigit()),
            "warc/revisit" if kind == "revisit" else mime,
            record.http_headers.get_statuscode(),
            header("WARC-Payload-Digest").removeprefix("sha1:"),
        )
    )


def _add_text(archive: Archive, identifier: str, mime: str, body: bytes) -> None:
    if mime in {"text/html", "application/xhtml+xml"}:
        page = _Page()
        page.feed(body.decode("utf-8", "replace"))
        page.close()
        archive.links[identifier] = page.links
        if page.has_text:
            archive.texts.add(identifier)
    elif mime == "text/plain" and body.strip():
        archive.texts.add(identifier)


def _decoded(raw: bytes, coding: str | None) -> bytes:
    return gzip.decompress(raw) if coding == "gzip" else raw


Figures = dict[str, tuple[Any, Any]]
"""Name of a figure: counted from the WARC files, and as the product has it."""


def recount(crawl: Path, collection: Path, cdx: Path, wacz: Path) -> Figures:
    """Return every figure of the products beside what *crawl* has."""
    archive = read_archive(crawl)
    captures = sorted(archive.captures)
    figures: Figures = {"payloads with a wrong digest": ([], archive.broken)}
    figures["CDXJ lines"] = (captures, sorted(_of_cdxj(_lines(collection / "cdxj"))))
    figures["merged lines"] = (captures, sorted(_of_cdxj(_lines(collection / "merged"))))
    figures["CDX lines"] = (captures, sorted(_of_cdx(_lines(cdx))))
    figures["table rows"] = (captures, sorted(_of_table(collection / "table")))
    figures |= _of_summary(captures, json.loads((collection / "summary.json").read_text()))
    figures |= _of_summary_text(captures, (collection / "summary.txt").read_text())
    figures |= _of_wat(archive, collection / "wat")
    wet = [each for each, kind in _refers(collection / "wet") if kind == "conversion"]
    figures["WET records"] = (sorted(archive.texts), sorted(wet))
    sidecars = [each for each, kind in _refers(collection / "meta") if kind == "metadata"]
    figures["sidecar records name a capture"] = (
        [],
        sorted(set(sidecars) - set(archive.identifiers)),
    )
    figures |= _of_capture_index(archive, crawl / "captures.parquet")
    figures |= _of_wacz(captures, crawl, wacz)
    return figures


def _lines(directory: Path) -> Iterator[str]:
    for path in sorted(directory.iterdir()):
        if path.is_file():
            yield from path.read_text().splitlines()


def _of_cdxj(lines: Iterator[str]) -> Iterator[Capture]:
    for line in lines:
        if line.startswith("!"):
            continue
        _, second, text = line.split(" ", 2)
        said = json.loads(text)
        yield Capture(
            said["filename"],
            int(said["offset"]),
            int(said["length"]),
            said["url"],
            second,
            said.get("mime", ""),
            said["status"],
            said["digest"].removeprefix("sha1:"),
        )


def _of_cdx(lines: Iterator[str]) -> Iterator[Capture]:
    for line in lines:
        if line.startswith(" CDX"):
            continue
        _, second, url, mime, status, digest, _, _, length, offset, file = line.split(" ")
        mime = "" if mime == "-" else mime
        yield Capture(file, int(offset), int(length), url, second, mime, status, digest)


def _of_table(table: Path) -> Iterator[Capture]:
    for path in table.rglob("*.parquet"):
        for row in pq.ParquetFile(path).read().to_pylist():
            yield Capture(
                row["warc_filename"],
                row["warc_record_offset"],
                row["warc_record_length"],
                row["url"],
                f"{row['fetch_time']:%Y%m%d%H%M%S}",
                row["content_mime_type"] or "",
                str(row["fetch_status"]),
                row["content_digest"],
            )


def _of_summary(captures: list[Capture], summary: dict[str, Any]) -> Figures:
    kinds: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for each in captures:
        kinds[each.mime or "-", each.status] += 1
        sizes[each.mime or "-", each.status] += each.length
    counted = sorted([mime, status, kinds[mime, status], sizes[mime, status]] for mime, status in kinds)
    seconds = [each.second for each in captures]
    months = Counter(each.second[:6] for each in captures)
    raw = summary["amicrawl"]
    return {
        "summary: captures": (len(captures), summary["captures"]),
        "summary: bytes": (sum(each.length for each in captures), summary["bytes"]),
        # Each WARC file has an index, and the keys of one are in order. A key has no capitals.
        "summary: consecutive URLs": (
            len({(each.file, each.url.lower()) for each in captures}),
            summary["urls"],
        ),
        "summary: first and last": (
            (min(seconds), max(seconds)),
            (summary["first"], summary["last"]),
        ),
        "summary: types, statuses, bytes": (counted, sorted(raw["by_mime_status"])),
        "summary: months": (dict(months), {month: count for month, count, _ in raw["by_month"]}),
        "summary: revisits": (
            sum(each.mime == "warc/revisit" for each in captures),
            sum(summary["mimestatus"]["Revisit"].values()),
        ),
        "summary: captures with a digest": (len(captures), raw["digested"]),
    }


def _of_summary_text(captures: list[Capture], text: str) -> Figures:
    """Return the figures that are exact below 8,192, and estimates with their error beyond."""
    urls = len({each.url.lower() for each in captures})
    duplicates = len(captures) - len({each.digest for each in captures})
    found = {
        name: re.search(rf"{name} +(fewer than )?([0-9,]+)(?: ± ([0-9,]+))?", text)
        for name in ("Different URLs", "Duplicates by Digest")
    }
    figures: Figures = {}
    for (name, match), counted in zip(found.items(), (urls, duplicates), strict=True):
        assert match is not None, name
        bound, value, error = match[1], _number(match[2]), _number(match[3] or "0")
        # Two standard errors are given; one estimate in twenty is further off.
        is_right = counted < value if bound else abs(value - counted) <= 2 * error
        figures[f"summary: {name}"] = (counted, counted if is_right else match[0])
    return figures


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _of_wat(archive: Archive, wat: Path) -> Figures:
    identifiers, links = [], {}
    for path in sorted(wat.glob("*.wat.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type != "metadata":
                    continue
                identifier = record.rec_headers.get_header("WARC-Refers-To")
                identifiers.append(identifier)
                found = json.loads(record.raw_stream.read())["Envelope"]["Payload-Metadata"]
                page = found.get("HTTP-Response-Metadata", {}).get("HTML-Metadata")
                if page is not None and identifier in archive.links:
                    paths = [each["path"] for each in page.get("Links", ())]
                    # A page gives at most so many, its head's too; it says that others were left out.
                    of_head = page.get("Head", {})
                    entries = sum(len(of_head.get(name, ())) for name in ("Metas", "Link", "Scripts"))
                    is_cut = "Left-Out" in page and len(paths) + entries == _MOST_ENTRIES
                    counted = sum(each == "A@/href" for each in paths)
                    links[identifier] = archive.links[identifier] if is_cut else counted
    here = {identifier: archive.links[identifier] for identifier in links}
    return {
        "WAT records": (sorted(archive.identifiers), sorted(identifiers)),
        "WAT links of pages": (here, links),
        "WAT pages": (len(archive.links), len(links)),
    }


def _refers(directory: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(directory.glob("*.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                yield record.rec_headers.get_header("WARC-Refers-To"), record.rec_type


def _of_capture_index(archive: Archive, path: Path) -> Figures:
    rows = [row for row in pq.ParquetFile(path).read().to_pylist() if row["warc_file"]]
    listed = [
        (row["warc_file"], row["warc_offset"], row["warc_length"], row["url"], str(row["status"]))
        for row in rows
    ]
    counted = [(each.file, each.offset, each.length, each.url, each.status) for each in archive.captures]
    places = {(row["warc_file"], row["warc_offset"]): row for row in rows}
    stored = {place: places[place] for place in archive.payloads if place in places}
    return {
        "captures.parquet: rows": (sorted(counted), sorted(listed)),
        "captures.parquet: payloads": (
            archive.payloads,
            {place: (row["digest"], row["body_length"]) for place, row in stored.items()},
        ),
        "captures.parquet: revisits": (
            archive.types["revisit"],
            sum(row["unchanged"] for row in rows),
        ),
    }


def _of_wacz(captures: list[Capture], crawl: Path, wacz: Path) -> Figures:
    with zipfile.ZipFile(wacz) as package:
        lines = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
        described = json.loads(package.read("datapackage.json"))["resources"]
        said = {each["path"]: (each["hash"], each["bytes"]) for each in described}
        here = {path: _hashed(package.read(path)) for path in said}
        pages = [json.loads(line)["url"] for line in package.read("pages/pages.jsonl").splitlines()[1:]]
        packed = {
            path.name: package.read(f"archive/{path.name}") == path.read_bytes()
            for path in crawl.glob("*.warc.gz")
        }
        sealed = json.loads(package.read("datapackage-digest.json"))["hash"]
        whole = _hashed(package.read("datapackage.json"))[0]
    shown = {each.url for each in captures if each.status == "200" and "html" in each.mime}
    return {
        "WACZ: index lines": (captures, sorted(_of_cdxj(iter(lines)))),
        "WACZ: hashes and sizes": (here, said),
        "WACZ: hash of the description": (whole, sealed),
        "WACZ: archives are the crawl's": (dict.fromkeys(packed, True), packed),
        "WACZ: pages": (sorted(shown), sorted(set(pages))),
    }


def _hashed(data: bytes) -> tuple[str, int]:
    return f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)


def shown(value: Any) -> str:
    """Return *value* in a few words: the number of a collection's members."""
    is_long = isinstance(value, list | dict) and len(value) != 1
    return f"{len(value):,}" if is_long else f"{value:,}" if isinstance(value, int) else str(value)[:60]


def main(arguments: list[str]) -> int:
    """Print all figures; return 1 if two differ."""
    figures = recount(*map(Path, arguments))
    for name, (counted, product) in figures.items():
        mark = "equal" if counted == product else "DIFFERENT"
        sys.stdout.write(f"{name:36} {shown(counted):>24} {shown(product):>24}  {mark}\n")
    return int(any(counted != product for counted, product in figures.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
