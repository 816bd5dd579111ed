"""`amicrawl inspect`: what a crawl's output holds, also while it is being written or after a kill."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from amicrawl.cli.options import AsOneObject, json_text, print_lines
from amicrawl.disk import readable, refuse_pipe
from amicrawl.errors import DamagedFileError, InputError
from amicrawl.reading import GZIP_MAGIC, ZSTD_BEGINS, read_records
from amicrawl.record import unkept_sentences
from amicrawl.terminal import aligned, harmless, human_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.cli.crawl_facts import CrawlFacts
    from amicrawl.reading import Broken


MOST_ROWS = 100_000
"""Rows that are shown at most."""

_FILES_SHOWN = 50
_PATTERNS_SHOWN = 20
_OPEN = ".open"


Inspected = Annotated[
    Path, typer.Argument(help="captures.parquet, a crawl's directory, or a WARC or ARC file.")
]
Rows = Annotated[
    int, typer.Option("-n", min=0, max=MOST_ROWS, help="Rows or records to show.", metavar="N")
]


def inspect(path: Inspected, rows: Rows = 20, as_json: AsOneObject = False) -> None:
    """Show what PATH holds: the captures of a crawl, or the records of a WARC file.

    Changes nothing, so a running or killed crawl may be looked at. Example: amicrawl inspect ami-out
    """
    with readable(path):
        lines = _inspected(path, rows, as_json=as_json)
    print_lines(lines)


def _inspected(path: Path, rows: int, *, as_json: bool) -> Iterable[str]:
    if {".warc", ".arc"} & {*path.suffixes} and not path.is_dir():
        listing = list_records(path, limit=rows)
        return [_listing_json(path, listing)] if as_json else _listing_text(path, listing)
    # Loaded where there is an index: WARC files are listed without Arrow.
    from amicrawl.cli.crawl_facts import facts_of  # noqa: PLC0415

    facts = facts_of(path, rows=rows)
    return [_facts_json(path, facts)] if as_json else _facts_text(path, facts)


def _facts_json(path: Path, facts: CrawlFacts) -> str:
    return json_text(
        {
            "path": str(path),
            "rows": facts.rows,
            "bytes": facts.bytes,
            "failed": facts.failed,
            "skipped": facts.skipped,
            "unchanged": facts.unchanged,
            "statuses": {str(status): facts.statuses[status] for status in sorted(facts.statuses)},
            "captures": facts.captures,
            "files": [asdict(file) for file in facts.files],
            "crawl": facts.crawl,
            "is_held": facts.is_held,
            "notes": facts.notes,
        }
    )


def _listing_json(path: Path, listing: WarcListing) -> str:
    facts = {**asdict(listing), "records": [record._asdict() for record in listing.records]}
    return json_text({"path": str(path), "open": path.suffix == _OPEN, **facts})


def _facts_text(path: Path, facts: CrawlFacts) -> Iterator[str]:
    skipped = f", {facts.skipped:,} skipped" if facts.skipped else ""
    yield (
        f"{facts.rows:,} rows, {human_size(facts.bytes)} of payload, "
        f"{facts.unchanged:,} unchanged, {facts.failed:,} failed{skipped}"
    )
    if facts.rows:
        counts = sorted(facts.statuses.items(), key=lambda item: (-item[1], item[0]))
        yield "status: " + ", ".join(f"{status or 'ERR'} {count:,}" for status, count in counts if count)
    if facts.crawl:
        yield from _crawl_text(facts.crawl, str(path), is_held=facts.is_held)
    if facts.files:
        yield ""
        yield from _files_text(facts)
    if facts.captures:
        yield ""
        yield from _captures_text(facts)
    for note in facts.notes:
        yield f"note: {harmless(note)}"


def _crawl_text(crawl: dict[str, Any], directory: str, *, is_held: bool | None) -> Iterator[str]:
    """Show the plain values of `crawl.json`, and the counts."""
    if is_held is False:
        crawl = {**crawl, "state": "running, or killed (no process holds the directory)"}
    shown = ("state", "started", "finished", "finish_reason", "software")
    facts = [f"{name} {crawl[name]}" for name in shown if isinstance(crawl.get(name), str)]
    yield harmless("crawl: " + ", ".join(facts))
    counts = crawl.get("counts")
    if isinstance(counts, dict) and counts:
        yield harmless("counts: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    links = crawl.get("links")
    if isinstance(links, dict) and links:
        yield harmless("links: " + ", ".join(f"{name} {count}" for name, count in links.items()))
    for line in unkept_sentences(crawl.get("unkept"), directory):
        yield harmless(line)
    ignored = crawl.get("ignored")
    if isinstance(ignored, dict):
        for pattern, hits in list(ignored.items())[:_PATTERNS_SHOWN]:
            yield harmless(f"ignored: {hits} by {pattern}")


def _files_text(facts: CrawlFacts) -> Iterator[str]:
    table = [("FILE", "BYTES", "RECORDS", "STATE")]
    for file in facts.files[:_FILES_SHOWN]:
        records = "" if file.records is None else str(file.records)
        table.append((harmless(file.name), str(file.size), records, file.state))
    yield from aligned(table, right=(False, True, True, False))
    rest = facts.files[_FILES_SHOWN:]
    if rest:
        yield f"... and {len(rest):,} more, {human_size(sum(file.size for file in rest))}"


def _captures_text(facts: CrawlFacts) -> Iterator[str]:
    table = [("STATUS", "BYTES", "HOST", "URL")]
    for row in facts.captures:
        url = harmless(str(row["url"]))
        if row["error"]:
            url += f"  ({harmless(str(row['error']), limit=120)})"
        table.append(
            (str(row["status"] or "ERR"), str(row["body_length"]), harmless(str(row["host"])), url)
        )
    yield from aligned(table, right=(True, True, False, False))
    if facts.rows > len(facts.captures):
        yield f"... and {facts.rows - len(facts.captures):,} more"


def _listing_text(path: Path, listing: WarcListing) -> Iterator[str]:
    state = ", being written" if path.suffix == _OPEN else ""
    yield f"{harmless(path.name)}: {human_size(listing.size)}{state}"
    table = [("OFFSET", "LENGTH", "TYPE", "STATUS", "URI")]
    for record in listing.records:
        status = "" if record.status is None else str(record.status)
        table.append((str(record.offset), str(record.length), record.type, status, harmless(record.uri)))
    yield from aligned(table, right=(True, True, False, True, False))
    if listing.more:
        yield "... and more; -n says how many are shown"
    if listing.fault:
        yield f"note: {harmless(listing.fault)}"


_BEGINNINGS = (b"WARC/", b"filed", GZIP_MAGIC, *ZSTD_BEGINS)
"""What a WARC or ARC file begins with: a record, a gzip member or a zstd frame."""
_STATUS_LINE = 64
"""Bytes of a block that are looked at."""


class ListedRecord(NamedTuple):
    """A record, and where it is."""

    offset: int
    """First byte of its gzip member, or of the record itself in a file that is not packed."""
    length: int
    """Bytes of the member or of the record: what `warc_length` says in the index."""
    type: str
    status: int | None
    """HTTP status; None where the record holds no response."""
    uri: str
    """`WARC-Target-URI`; untrusted text, empty where there is none."""


@dataclass(slots=True)
class WarcListing:
    """The first records of a file."""

    size: int
    """Bytes of the file."""
    records: list[ListedRecord]
    more: bool = False
    """Whether there are records behind those listed."""
    fault: str = ""
    """What is lost or wrong behind the records listed, or between them; empty for nothing."""


def list_records(path: Path, *, limit: int) -> WarcListing:
    """Return the first *limit* records of the WARC file *path*.

    Raises InputError where it does not begin like one. Of a file that is cut or damaged further on, the
    whole records are listed; DamagedFileError where not one is whole.
    """
    refuse_pipe(path)
    listing = WarcListing(path.stat().st_size, [])
    with path.open("rb") as stream:
        if listing.size and not stream.read(5).startswith(_BEGINNINGS):
            raise InputError(f"{path} is not a WARC file. Give one, or a capture index, or a directory.")
    broken: list[Broken] = []
    for record in read_records(path, on_broken=broken.append, block_cap=_STATUS_LINE):
        if len(listing.records) >= limit:
            listing.more = True
            break
        if record.whole:
            listing.records.append(
                ListedRecord(record.offset, record.length, record.type, record.http_status, record.uri)
            )
    if broken and listing.size:
        first = broken[0]
        listing.fault = f"byte {first.offset}: {first.reason}"
        if not listing.records and limit:
            raise DamagedFileError(path, first.offset, f"no whole WARC record ({first.reason})")
    return listing
