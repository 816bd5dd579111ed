"""The links of one capture: its payload decoded, read by its type, bounded. No list crawl needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.discovery import Limits, extract, is_read
from amicrawl.discovery.coding import decoded
from amicrawl.urls import text_of

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.discovery import Link

_PAGE = Limits()
_SITEMAP = Limits(payload=50 << 20, links=50_000, characters=64 << 20)
"""What the sitemap protocol allows for one file."""
_GZIP = frozenset({"application/gzip", "application/x-gzip"})


def names_links(url: str, content_type: str) -> bool:
    """Tell whether links are looked for in a page at *url* with that Content-Type."""
    return is_read(url, content_type) or _is_packed_sitemap(url, content_type)


def links_of(capture: Capture, url: str, *, is_sitemap: bool) -> list[Link]:
    """Return the links of the page at *url* that *capture* brought."""
    content_type = text_of(capture.header(b"content-type") or b"")
    limits = _SITEMAP if is_sitemap else _PAGE
    if is_sitemap or _is_packed_sitemap(url, content_type):
        content_type = "application/xml"
    payload = _payload(capture, limits.payload) if is_read(url, content_type) else b""
    return extract(payload, url=url, content_type=content_type, fields=capture.fields, limits=limits)


def _payload(capture: Capture, limit: int) -> bytes:
    codings = b",".join(value for name, value in capture.fields if name.lower() == b"content-encoding")
    payload = decoded(capture.payload(), codings, limit=limit)
    if payload.startswith(b"\x1f\x8b"):
        # A sitemap in a file of its own packing, or a page that was packed without a word of it.
        payload = decoded([payload], b"gzip", limit=limit)
    return payload


def _is_packed_sitemap(url: str, content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type in _GZIP and url.partition("?")[0].endswith(".xml.gz")
