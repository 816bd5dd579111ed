"""A capture on its way into the archive, and its row in the index, `captures.parquet`. Pure.

The crawl fills the first four fields of a `CaptureItem`, `archive.WarcStage` the rest when it writes the
records, and `row_of` makes the row of the whole.

The first thirteen columns are those every reader of such an index knows; ours follow. Text is never
null: what is not known is empty. `ttfb_ms` alone may be null.

    url             the URL that was fetched
    host            the host of that URL: lower case, without user, port and the brackets of IPv6
    status          HTTP status; 0 where the fetch failed before a response
    fetched_at      when the fetch was complete, Unix milliseconds; less duration_ms, it is WARC-Date
    content_type    Content-Type as sent, control characters removed
    body_length     bytes of the payload, transfer coding removed; 0 for a 304 and for a failure
    digest          SHA-1 of that payload, hex; for a 304 the seed's; empty for a failure
    unchanged       whether digest is the one the seed knew, or the server said so (304)
    warc_file       file that holds the response or revisit record; empty for a failure
    warc_offset     first byte of the record's gzip member; 0 for a failure
    warc_length     bytes of that member; 0 for a failure
    error           why there was no response: a `Failure`, a colon, details; empty on success
    meta_json       what the seed list said of the URL besides, as a JSON object of strings, and
                    `tls_fault`, why the certificate of the server was not trusted, and `page_fault`,
                    why a browser did not show the page as a whole
    etag            ETag as sent; for a 304 without one, the seed's
    last_modified   Last-Modified as sent; for a 304 without one, the seed's
    final_url       where a redirect points; for other responses the URL itself; empty for a failure
    ip_address      the address that was dialled
    protocol        http/1.1, h2 ...
    ttfb_ms         from the start of the request to the first byte; null where none came
    duration_ms     from the start of the request to the last byte
    truncated       why the payload is not whole: length, time, disconnect, unspecified; else empty
    record_id       WARC-Record-ID of that record; empty for a failure
    attempts        how often the URL was requested until this came of it
    payload_digest  WARC-Payload-Digest of the record with the payload, where it is not that of `digest`,
                    as for a chunked body; else empty
    original_url    of a revisit, the URL of the record with the payload; else empty
    original_at     of a revisit, the WARC-Date of that record in Unix milliseconds; 0 where unknown
    via             the URL that it was first found on; empty for a start URL
    link            how it was found: seed, link, requisite, redirect, sitemap, or robots (robots.txt
                    and what it names); empty where unknown
    hops            how many URLs lead to it, each first found on the one before; 0 for a start URL
    page            the URL of the page in a browser that it belongs to; empty for what none requested
    resource_type   what that browser requested it as: document, stylesheet, image, media, font, script,
                    texttrack, xhr, fetch, eventsource, websocket, manifest, other; empty likewise
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from amicrawl.capture import REDIRECTS, Failure
from amicrawl.record.warc import target_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.capture import Capture
    from amicrawl.record.deduplication import Original
    from amicrawl.record.warc import Resource
    from amicrawl.record.writer import RecordLocation
    from amicrawl.seed import Seed

ERROR_LIMIT = 1000
"""Characters of `error`; details beyond are cut."""

VALIDATOR_LIMIT = 4096
"""Bytes of an ETag or Last-Modified that is kept in index and frontier, and sent back; no honest one is
longer, and a cut one would match nothing."""

COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("url", "string"),
    ("host", "string"),
    ("status", "int32"),
    ("fetched_at", "int64"),
    ("content_type", "string"),
    ("body_length", "int64"),
    ("digest", "string"),
    ("unchanged", "bool"),
    ("warc_file", "string"),
    ("warc_offset", "int64"),
    ("warc_length", "int64"),
    ("error", "string"),
    ("meta_json", "string"),
    ("etag", "string"),
    ("last_modified", "string"),
    ("final_url", "string"),
    ("ip_address", "string"),
    ("protocol", "string"),
    ("ttfb_ms", "int32"),
    ("duration_ms", "int32"),
    ("truncated", "string"),
    ("record_id", "string"),
    ("attempts", "int32"),
    ("payload_digest", "string"),
    ("original_url", "string"),
    ("original_at", "int64"),
    ("via", "string"),
    ("link", "string"),
    ("hops", "int32"),
    ("page", "string"),
    ("resource_type", "string"),
)
"""Names of the columns, and the Arrow type of each."""

EMPTY: Final[dict[str, Any]] = {"string": "", "bool": False, "int32": 0, "int64": 0}
"""What stands for an unknown value, by the type of its column."""

NULLABLE: Final = frozenset({"ttfb_ms"})
"""Columns that may be null; no other is."""

Row = dict[str, str | int | bool | None]
"""A row by column; every one of `COLUMNS` is there."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_HOST = re.compile(r"//(?:[^/?#\\]*@)?(?:\[([^]/?#\\]*)|([^:/?#\\]*))")
_NOWHERE = ("", 0, 0)
TLS_FAULT = "tls_fault"
"""The key of `meta_json` that says why the certificate of the server was not trusted."""
PAGE_FAULT = "page_fault"
"""The key of `meta_json` that says why a browser did not show the page as a whole."""
_INT32_MAX = 2**31 - 1


class Provenance(NamedTuple):
    """How a URL was found."""

    via: str = ""
    """The URL that it was first found on; empty for a start URL, and where that is not known."""
    link: str = ""
    """The value of the column; empty where it is not known."""
    hops: int = 0
    route: str = ""
    """The letters of its hops, as in `hopsFromSeed` of a metadata record."""


OF_SEED = Provenance(link="seed")
"""What is said of a start URL."""


@dataclass(slots=True)
class CaptureItem:
    """A capture, the seed it was made for, and where it is kept.

    Nothing here closes `capture.body`: its fetcher does so after the item has been stored.
    """

    capture: Capture
    seed: Seed
    attempts: int = 1
    """How often the URL was requested until this came of it, this time included."""
    final_url: str = ""
    """Where a redirect points, resolved; empty for any other response."""
    provenance: Provenance = OF_SEED
    page: str = ""
    """The URL of the page in a browser that it belongs to; empty for none."""
    resource_type: str = ""
    """What that browser requested it as; empty where none did."""
    page_fault: str = ""
    """Why that browser did not show the page as a whole; empty where it did."""
    resources: Sequence[Resource] = ()
    """What was made of the page: further records, before that of the response."""

    location: RecordLocation | None = None
    """The response or revisit record; None where nothing was stored."""
    is_revisit: bool = False
    """Whether that record is a revisit, which points at an earlier record for the payload."""
    original: Original | None = None
    """The record that it points at; None where it is not a revisit."""
    record_id: str = ""
    """`WARC-Record-ID` of that record, with its angle brackets."""
    digest: str = ""
    """SHA-1 of the payload, lower-case hex; that of the seed where the server said 304."""
    payload_digest: str = ""
    """`WARC-Payload-Digest` of the record with the payload, where it is not that of `digest`."""
    body_length: int = 0
    """Bytes of the payload."""
    unchanged: bool = False
    """Whether the payload is the one that the seed knows."""
    described: tuple[str, str, str] | None = None
    """Content-Type, ETag and Last-Modified, once its row was made."""

    @property
    def leads_on(self) -> bool:
        """Whether it is a redirect to another URL; one without Location is shown as a page."""
        return self.capture.status in REDIRECTS and self.final_url != self.capture.url


def row_of(item: CaptureItem) -> Row:
    """Return the row of *item*, which has been stored or has failed."""
    capture, url = item.capture, item.capture.url
    warc_file, warc_offset, warc_length = item.location or _NOWHERE
    content_type, etag, last_modified = item.described = description_of(item)
    failed, original = capture.status == 0, item.original
    via, link, hops, _ = item.provenance
    final_url = url if item.final_url == url else _printable(item.final_url) or url
    return {
        "url": url,
        "host": host_of(url),
        "status": capture.status,
        "fetched_at": capture.started_ms + capture.duration_ms,
        "content_type": content_type,
        "body_length": item.body_length,
        "digest": item.digest,
        "unchanged": item.unchanged,
        "warc_file": warc_file,
        "warc_offset": warc_offset,
        "warc_length": warc_length,
        "error": _error(capture) if failed else "",
        "meta_json": _meta_json(item),
        "etag": etag,
        "last_modified": last_modified,
        "final_url": "" if failed else final_url,
        "ip_address": capture.ip_address or "",
        "protocol": capture.protocol or "",
        "ttfb_ms": capture.ttfb_ms if capture.ttfb_ms is None else min(capture.ttfb_ms, _INT32_MAX),
        "duration_ms": min(capture.duration_ms, _INT32_MAX),
        "truncated": capture.truncated.value if capture.truncated else "",
        "record_id": item.record_id,
        "attempts": item.attempts,
        "payload_digest": item.payload_digest,
        "original_url": _printable(original.url) if original is not None else "",
        "original_at": original.captured_at if original is not None else 0,
        "via": _printable(via) if via else "",
        "link": link,
        "hops": hops,
        "page": _printable(item.page) if item.page else "",
        "resource_type": item.resource_type,
    }


def _meta_json(item: CaptureItem) -> str:
    """Return what the seed said besides, with the faults of its certificate and its page, if any.

    A recrawl has the row of the crawl before as its seed: the faults that it names are dropped.
    """
    meta, tls = item.seed.meta_json, item.capture.tls
    fault = tls.fault or "not verified" if tls is not None and not tls.verified else ""
    if not (fault or item.page_fault or TLS_FAULT in meta or PAGE_FAULT in meta):
        return meta
    try:
        fields = orjson.loads(meta or "{}")
    except orjson.JSONDecodeError:
        return meta
    if not isinstance(fields, dict):
        return meta
    for name, value in ((TLS_FAULT, fault), (PAGE_FAULT, item.page_fault)):
        fields.pop(name, None)
        if value:
            fields[name] = value
    return orjson.dumps(fields).decode() if fields else ""


def host_of(url: str) -> str:
    """Return the host of *url*: lower case, without user, port and the brackets of an IPv6 address."""
    found = _HOST.search(url)
    return (found[1] or found[2] or "").lower() if found else ""


def header_text(value: bytes) -> str:
    """Return a header *value* as text: latin-1, without control characters."""
    text = value.decode("latin-1")
    return text if text.isprintable() else _UNPRINTABLE.sub("", text)


def _printable(url: str) -> str:
    """Return *url* as it stands or, where a terminal might obey it, percent-encoded."""
    return url if url.isprintable() else target_uri(url)


def description_of(item: CaptureItem) -> tuple[str, str, str]:
    """Return Content-Type, ETag and Last-Modified of the response, each the first of its name."""
    content_type = etag = last_modified = ""
    for name, value in item.capture.noted:
        key = name.lower()
        if key == b"content-type":
            content_type = content_type or header_text(value)
        elif key == b"etag" and len(value) <= VALIDATOR_LIMIT:
            etag = etag or header_text(value)
        elif key == b"last-modified" and len(value) <= VALIDATOR_LIMIT:
            last_modified = last_modified or header_text(value)
    if item.capture.status == 304 and item.unchanged:
        # RFC 9111, 3.2: what a 304 does not name again still holds, and the next crawl requests with it.
        etag = etag or item.seed.etag
        last_modified = last_modified or item.seed.last_modified
    return content_type, etag, last_modified


def _error(capture: Capture) -> str:
    failure = capture.failure or Failure.OTHER
    detail = _UNPRINTABLE.sub(" ", capture.failure_detail[:ERROR_LIMIT]).strip()
    return f"{failure.value}: {detail}"[:ERROR_LIMIT] if detail else failure.value
