"""Seed: a URL to fetch, and what its producer knows of it."""

from __future__ import annotations

from typing import NamedTuple


class Seed(NamedTuple):
    """One line of a seed list."""

    url: str
    """As written in the list; white space around it removed, nothing else changed."""
    digest: str = ""
    """SHA-1 of the payload at an earlier capture, lower-case hex; empty where unknown."""
    etag: str = ""
    """`ETag` of an earlier capture, for `If-None-Match`; empty where unknown."""
    last_modified: str = ""
    """`Last-Modified` of an earlier capture, for `If-Modified-Since`; empty where unknown."""
    captured_at: int = 0
    """When that earlier capture began, Unix milliseconds: the original's WARC-Date; 0 where unknown."""
    meta_json: str = ""
    """The other fields of the line as a compact JSON object of strings; empty where there are none."""
    original_url: str = ""
    """The URL of that earlier capture, where it was of another; empty for this one."""
    payload_digest: str = ""
    """`WARC-Payload-Digest` of that earlier capture, where it is not that of `digest`; else empty."""
