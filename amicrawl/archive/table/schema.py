"""The tables: which columns, of which type, in which order; and what of them is sought by value.

`EOT` is the table of the End of Term archive with its 31 columns, the last two of which name the
partition. `CCINDEX` is Common Crawl's, with its redirect, truncation and record id columns. Both hold
offsets and lengths in 64 bits: captures of more than 2 GiB exist. All columns may be null in the file,
as they show in the tables that exist. `fetch_time` is in milliseconds, UTC, without a time zone.

The name of the WARC file of a capture gives crawl, segment and subset:

    crawl-data/CRAWL/segments/SEGMENT/SUBSET/FILE      End of Term and Common Crawl
    crawl-data/CC-NEWS/YYYY/MM/CC-NEWS-REST.warc.gz    its news: CC-NEWS-YYYY-MM, REST, news-warc
    */PROJECT/CC-SUPPLEMENTAL-*/segments/DIGITS/SUBSET/FILE

A capture that no pattern fits belongs to the crawl `captures-YYYY-MM`, by its month, and the subset
`warc`, unless the caller names them. Rows are kept in directories named `crawl=.../subset=...` as Hive
has them; a value becomes a name by percent-escapes. A value is never missing: of a directory with
`__HIVE_DEFAULT_PARTITION__` alone, pyarrow and pandas cannot find the type, and Spark makes it void.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pyarrow as pa

SCHEMA_VERSION = 1
"""Goes up when a column changes its meaning."""

_URL: list[pa.Field[Any]] = [
    pa.field("url_surtkey", pa.string()),
    pa.field("url", pa.string()),
    pa.field("url_host_name", pa.string()),
    pa.field("url_host_tld", pa.string()),
    pa.field("url_host_2nd_last_part", pa.string()),
    pa.field("url_host_3rd_last_part", pa.string()),
    pa.field("url_host_4th_last_part", pa.string()),
    pa.field("url_host_5th_last_part", pa.string()),
    pa.field("url_host_registry_suffix", pa.string()),
    pa.field("url_host_registered_domain", pa.string()),
    pa.field("url_host_private_suffix", pa.string()),
    pa.field("url_host_private_domain", pa.string()),
    pa.field("url_host_name_reversed", pa.string()),
    pa.field("url_protocol", pa.string()),
    pa.field("url_port", pa.int32()),
    pa.field("url_path", pa.string()),
    pa.field("url_query", pa.string()),
]
_FETCH: list[pa.Field[Any]] = [
    pa.field("fetch_time", pa.timestamp("ms")),
    pa.field("fetch_status", pa.int16()),
]
_CONTENT: list[pa.Field[Any]] = [
    pa.field("content_digest", pa.string()),
    pa.field("content_mime_type", pa.string()),
    pa.field("content_mime_detected", pa.string()),
    pa.field("content_charset", pa.string()),
    pa.field("content_languages", pa.string()),
]
_WARC: list[pa.Field[Any]] = [
    pa.field("warc_filename", pa.string()),
    pa.field("warc_record_offset", pa.int64()),
    pa.field("warc_record_length", pa.int64()),
    pa.field("warc_segment", pa.string()),
]
PARTITION_COLUMNS = ("crawl", "subset")
LANGUAGE_SHARES = "content_language_shares"
"""A column beyond those of the tables that exist, for those who request it."""
_PARTITION: list[pa.Field[Any]] = [pa.field(name, pa.string()) for name in PARTITION_COLUMNS]


class TableSchema(NamedTuple):
    """One kind of table."""

    name: str
    columns: pa.Schema
    """All of them, those that name the partition last."""
    text_fields: dict[str, str]
    """Columns that are taken as they are, and the field of a CDXJ line that holds each."""

    def with_language_shares(self) -> TableSchema:
        """Return the table with one more column, behind the others: `content_language_shares`."""
        fields = list(self.columns)
        at = len(fields) - len(PARTITION_COLUMNS)
        return TableSchema(
            self.name,
            pa.schema([*fields[:at], pa.field(LANGUAGE_SHARES, pa.string()), *fields[at:]]),
            {**self.text_fields, LANGUAGE_SHARES: "language-shares"},
        )

    @property
    def in_files(self) -> pa.Schema:
        """The columns without those that are in the names of directories."""
        return pa.schema([field for field in self.columns if field.name not in PARTITION_COLUMNS])

    @property
    def held(self) -> pa.Schema:
        """The columns as they are in memory: those whose texts repeat, with a dictionary of them."""
        return as_held(self.columns)


_TEXT = {
    "content_digest": "digest",
    "content_mime_type": "mime",
    "content_mime_detected": "mime-detected",
    "content_charset": "charset",
    "content_languages": "languages",
}

EOT = TableSchema(
    "eot",
    pa.schema([*_URL, *_FETCH, *_CONTENT, pa.field("content_puid", pa.string()), *_WARC, *_PARTITION]),
    {**_TEXT, "content_puid": "puid"},
)
CCINDEX = TableSchema(
    "ccindex",
    pa.schema(
        [
            *_URL,
            *_FETCH,
            pa.field("fetch_redirect", pa.string()),
            *_CONTENT,
            pa.field("content_truncated", pa.string()),
            *_WARC,
            pa.field("warc_record_id", pa.binary()),
            *_PARTITION,
        ]
    ),
    {**_TEXT, "fetch_redirect": "redirect", "content_truncated": "truncated"},
)
SCHEMAS = {schema.name: schema for schema in (EOT, CCINDEX)}

HOST_COLUMNS = tuple(field.name for field in _URL if field.name.startswith("url_host_"))
"""The columns about a host, in the order of `HostColumns`."""
REPEATING = frozenset(
    {
        *(set(HOST_COLUMNS) - {"url_host_registered_domain"}),
        *("url_protocol", "content_mime_type", "content_mime_detected", "content_charset"),
        *(
            "content_languages",
            LANGUAGE_SHARES,
            "content_puid",
            "content_truncated",
            "warc_filename",
            "warc_segment",
        ),
        *PARTITION_COLUMNS,
    }
)
"""Columns whose texts repeat, so that they are held, and written, as places in a dictionary of them."""

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())


def as_held(columns: pa.Schema) -> pa.Schema:
    """Return *columns* with a dictionary for those whose texts repeat."""
    return pa.schema(
        [pa.field(field.name, _DICTIONARY) if field.name in REPEATING else field for field in columns]
    )


WITHOUT_DICTIONARY = frozenset(
    {
        *("url_surtkey", "url", "content_digest"),
        *("warc_record_id", "warc_record_offset", "warc_record_length"),
    }
)
"""Columns whose values hardly repeat; a dictionary would be written and thrown away."""

SOUGHT_BY_VALUE = ("content_digest", "url_host_registered_domain", "warc_record_id")
"""Columns that get a bloom filter where the table has them."""

MONTH_PREFIX = "captures-"
"""Begins the crawl of captures that nothing else names, before their month, `YYYY-MM`.

So no reader takes the value for a number or a date."""
DEFAULT_SUBSET = "warc"

_NAME = r"[^/\x00-\x1f]{1,80}"
_SUBSETS = "warc|robotstxt|crawldiagnostics|wat|wet"
_PREFIX = r"(?:.*/)?"
_MAIN = re.compile(rf"{_PREFIX}crawl-data/({_NAME})/segments/({_NAME})/({_SUBSETS})/[^/]+")
_NEWS = re.compile(
    rf"{_PREFIX}crawl-data/(CC-NEWS)/([0-9]{{4}})/([0-9]{{2}})/CC-NEWS-({_NAME})\.warc(?:\.gz)?"
)
_SUPPLEMENTAL = re.compile(
    rf"{_PREFIX}{_NAME}/(CC-SUPPLEMENTAL-{_NAME})/segments/([0-9]{{1,20}})/({_SUBSETS})/[^/]+"
)
_LONGEST_NAME = 255 - len("crawl=")
"""Bytes that the crawl may have in the name of a directory."""
_PLAIN = re.compile(r"[^A-Za-z0-9_.~+ \-]")


class CapturePlace(NamedTuple):
    """Where a capture belongs; None where neither the caller nor the file name says it."""

    crawl: str | None = None
    segment: str | None = None
    subset: str | None = None

    def over(self, other: CapturePlace) -> CapturePlace:
        """Return this place, with what it leaves open taken from *other*."""
        return CapturePlace(
            *[mine if mine is not None else its for mine, its in zip(self, other, strict=True)]
        )

    def directory(self) -> str:
        """Return the path of its rows below the table's directory."""
        return f"crawl={_escaped(self.crawl or '')}/subset={_escaped(self.subset or '')}"


NOWHERE = CapturePlace()


def place_of(warc_filename: str | None) -> CapturePlace:
    """Return where a capture in the file *warc_filename*, a path with slashes, belongs."""
    place = _place_named(warc_filename or "")
    # Of eighty characters, each may take twelve bytes once it is escaped.
    return place if len(_escaped(place.crawl or "")) <= _LONGEST_NAME else NOWHERE


def _place_named(name: str) -> CapturePlace:
    if found := _MAIN.fullmatch(name):
        return CapturePlace(*found.groups())
    if found := _NEWS.fullmatch(name):
        return CapturePlace(f"{found[1]}-{found[2]}-{found[3]}", found[4], "news-warc")
    if found := _SUPPLEMENTAL.fullmatch(name):
        return CapturePlace(*found.groups())
    return NOWHERE


def _escaped(value: str) -> str:
    return _PLAIN.sub(lambda found: "".join(f"%{octet:02X}" for octet in found[0].encode()), value)
