"""Fields of a seed line: the URL, the values of conditional requests, and the rest as `meta_json`. Pure.

The URL is checked cheaply: is there an http(s) scheme and something behind it? Whether the host is one,
and whether it may be requested, is decided where URLs are parsed. The values of conditional requests are
checked as strictly as what goes into a request head must be.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, NamedTuple

import orjson

from amicrawl.seed.seed import NotASeedError, excerpt
from amicrawl.urls import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Flaw = Callable[[str], None]
    """Takes the reason why one field of a line is left out."""

OF_AN_INDEX = frozenset(
    (
        *("url", "host", "status", "fetched_at", "content_type", "body_length", "digest", "unchanged"),
        *("warc_file", "warc_offset", "warc_length", "error", "meta_json", "etag", "last_modified"),
        *("final_url", "ip_address", "protocol", "ttfb_ms", "duration_ms", "truncated", "record_id"),
        *("attempts", "payload_digest", "original_url", "original_at"),
    )
)
"""Columns of a capture index, which say something of a fetch and not of a seed."""

WHITE_SPACE = " \t\r\n\f\v"
"""What may surround a URL without belonging to it."""

_HTTP = re.compile(r"https?://", re.IGNORECASE)
_HTTP_HOST = re.compile(r"https?://[^/?#\\\s]", re.IGNORECASE)
_HEX = re.compile(r"[0-9A-Fa-f]{40}")
_BASE32 = re.compile(r"[A-Za-z2-7]{32}")
# RFC 9110, 5.5: visible characters, blanks and obs-text. A line end here would forge a header field.
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{1,1024}")


def checked_url(text: str, flaw: Flaw) -> str:
    """Return *text* without white space around it; raise NotASeedError if it is not an HTTP URL.

    A user name and password in it are left out, since whatever is crawled is archived; that is reported
    to *flaw*.
    """
    url = text.strip(WHITE_SPACE)
    if "@" in url and (bare := without_userinfo(url)) != url:
        url = bare
        flaw("the user name and password in the URL are left out; give them as auth in a crawl file")
    if not _HTTP_HOST.match(url):
        if not url:
            raise NotASeedError("the URL is empty")
        if _HTTP.match(url):
            raise NotASeedError(f"{excerpt(url)} names no host", url=url)
        raise NotASeedError(f"{excerpt(url)} is not an HTTP or HTTPS URL", url=url)
    if "\0" in url:
        raise NotASeedError(f"{excerpt(url)} contains a NUL", url=url)
    if not url.isascii() and _SURROGATE.search(url):
        raise NotASeedError(
            f"{excerpt(url)} contains half a surrogate pair, which is not a character", url=url
        )
    return url


_SURROGATE = re.compile(r"[\ud800-\udfff]")


def url_of(fields: Mapping[str, object], flaw: Flaw, meta: str) -> str:
    """Return the field `url` of *fields*.

    Raises NotASeedError, with the `meta_json` *meta*, where there is none to request.
    """
    url = fields.get("url")
    try:
        if type(url) is not str:
            raise NotASeedError("the field url is missing" if url is None else "url is not a string")
        return checked_url(url, flaw)
    except NotASeedError as error:
        error.meta_json = meta
        raise


class Conditionals(NamedTuple):
    """What an earlier capture was known by, as in `Seed`; empty where it is not known."""

    digest: str = ""
    etag: str = ""
    last_modified: str = ""


CONDITIONAL = Conditionals._fields
"""Fields that make requests conditional; they are not repeated in `meta_json`."""


def conditionals(fields: Mapping[str, object], flaw: Flaw) -> Conditionals:
    """Return those of `CONDITIONAL` that *fields* has, checked; null counts as empty.

    An invalid one is left out, and the reason is reported to *flaw*.
    """
    found = {}
    for name in CONDITIONAL:
        value = fields.get(name)
        if value is None or value == "":
            continue
        checked = _digest_hex(value) if name == "digest" else _header_value(value)
        if checked is None:
            wanted = "SHA-1 digest (40 hex digits)" if name == "digest" else "header value"
            flaw(f"{name} {excerpt(value)} is not a {wanted}; it is left out")
        else:
            found[name] = checked
    return Conditionals(**found) if found else _NOTHING_KNOWN


_NOTHING_KNOWN = Conditionals()


def _digest_hex(value: object) -> str | None:
    """Return a SHA-1 digest as lower-case hex; labelled `sha1:`, it may be base32, as in WARC."""
    if type(value) is not str:
        return None
    label, colon, digits = value.strip(WHITE_SPACE).rpartition(":")
    if colon and label.lower() != "sha1":
        return None
    if _HEX.fullmatch(digits):
        return digits.lower()
    # Without a label, 32 characters may as well be the hex digits of an MD5.
    if colon and _BASE32.fullmatch(digits):
        return base64.b32decode(digits.upper()).hex()
    return None


def _header_value(value: object) -> str | None:
    text = value.strip(WHITE_SPACE) if type(value) is str else ""
    return text if _HEADER_VALUE.fullmatch(text) else None


def meta_json(fields: Mapping[str, str]) -> str:
    """Return *fields* as a compact JSON object in their order; empty where there are none.

    A field `meta_json` that holds such an object, as a query to a capture index gives it, is taken as it
    stands; other columns of an index beside it say something of an earlier fetch and are left out. Only
    what JSON demands is escaped, and half surrogate pairs, which no UTF-8 text can hold.
    """
    carried = _carried(fields)
    if carried is not None:
        known, text = carried
        fields = {name: value for name, value in fields.items() if name not in OF_AN_INDEX}
        if not fields:
            return text
        fields = {**known, **fields}
    if not fields:
        return ""
    try:
        return orjson.dumps(fields).decode()
    except TypeError:
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        return _without_surrogates(text)


def _carried(fields: Mapping[str, str]) -> tuple[dict[str, str], str] | None:
    """Return the object that the field `meta_json` of *fields* holds, and its text; None for none."""
    text = fields.get("meta_json")
    if text is None:
        return None
    if text in {"", "null"}:
        return {}, ""
    try:
        known = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(known, dict) and all(isinstance(value, str) for value in known.values()):
        return known, _without_surrogates(text)
    return None


def _without_surrogates(text: str) -> str:
    """Return the JSON *text* with half surrogate pairs, which no UTF-8 text can hold, escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
