"""Seed formats: their names, and the detection of a source's format. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from amicrawl.errors import UsageError
from amicrawl.invalid import nearest


class SeedFormat(StrEnum):
    """The formats a seed list may be in; each may be packed with gzip or Zstandard."""

    LINES = "lines"
    """One URL a line; blank lines and lines that start with `#` are passed over."""
    JSONL = "jsonl"
    """One JSON object a line, with the URL as `url`."""
    PARQUET = "parquet"
    """A table with a column `url`; an earlier crawl's `captures.parquet` among them."""
    SITEMAP = "sitemap"
    """A sitemap or sitemap index (sitemaps.org 0.9), an RSS or Atom feed, or a text sitemap."""


PARQUET_MAGIC = b"PAR1"

_PACKED = (".gz", ".zst")
_SUFFIXES = {
    ".jsonl": SeedFormat.JSONL,
    ".ndjson": SeedFormat.JSONL,
    ".parquet": SeedFormat.PARQUET,
    ".pq": SeedFormat.PARQUET,
    ".xml": SeedFormat.SITEMAP,
}
LIST_ENDINGS = frozenset(
    {".txt", ".lst", ".list", ".urls", ".csv", ".tsv", ".json", ".rss", ".atom", *_SUFFIXES, *_PACKED}
)
"""Endings of files that are taken for seed lists, in whatever format."""
_OBJECTS = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{")
"""The begin of an object, or of an array of them."""
_SITEMAP_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|feed|RDF)[\s>/]")


def is_web(source: str) -> bool:
    """Return whether *source* is an http or https URL rather than a file."""
    return source[:8].lower().startswith(("http://", "https://"))


def format_named(name: str) -> SeedFormat:
    """Return the format called *name*; raise UsageError, naming the nearest one, where there is none."""
    try:
        return SeedFormat(name)
    except ValueError:
        known = [str(known) for known in SeedFormat]
        meant = nearest(name.lower(), known, cutoff=0.5)
        advice = f"Did you mean {meant}?" if meant else f"Give one of {', '.join(known)}."
        raise UsageError(f"There is no seed format {name!r}. {advice}") from None


def format_of(source: str, head: bytes) -> SeedFormat:
    """Infer the format of *source*, a path, URL or `-`, of which *head* is the unpacked beginning.

    Content that is unmistakably Parquet decides; then the name; then content that begins like a sitemap
    or a JSON object, as no URL does; everything else is lines.
    """
    if head.startswith(PARQUET_MAGIC):
        return SeedFormat.PARQUET
    if is_web(source):
        return SeedFormat.SITEMAP
    name = source.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    for suffix, named in _SUFFIXES.items():
        if name.endswith(suffix):
            return named
    if starts_markup(head) and _SITEMAP_ROOT.search(head):
        return SeedFormat.SITEMAP
    return SeedFormat.JSONL if _OBJECTS.match(head) else SeedFormat.LINES


def is_called_a_table(source: str) -> bool:
    """Return whether the name of *source* says that a line has columns, as CSV has."""
    name = source.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return name.endswith((".csv", ".tsv"))


def starts_markup(head: bytes) -> bool:
    """Return whether *head*, after white space and a byte order mark, begins with a tag."""
    return _first(head) == b"<"


def _first(head: bytes) -> bytes:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
