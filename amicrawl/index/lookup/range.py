"""Which part of an index a question is about: a URL and a kind of match become a range of keys. Pure.

Keys are SURTs, and lines are in byte order; so all captures of a URL, a path, a host, or a domain with
its subdomains are neighbours. A range is [start, end) of whole lines:

    exact    the URL                         key                to  key!
    prefix   URLs that begin with it         key                to  key with its last byte one higher
    host     all of the host                 com,example)/      to  com,example*
    domain   the host and its subdomains     com,example)/      to  com,example-
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from amicrawl.urls import octets, surt


class MatchType(StrEnum):
    """Which captures a URL stands for."""

    EXACT = "exact"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"


class KeyRange(NamedTuple):
    """Lines from *start* up to, without, *end*."""

    start: bytes
    end: bytes


def wildcard(url: str) -> tuple[str, MatchType]:
    """Return the URL without its asterisk, and the match it asks for.

    `*.host` is a domain, anything that ends in `*` a prefix, and `*` alone everything.
    """
    if url.startswith("*."):
        return url[2:], MatchType.DOMAIN
    if url.endswith("*"):
        return url[:-1], MatchType.PREFIX
    return url, MatchType.EXACT


EVERYTHING = KeyRange(b'"', b"\xff")
"""All lines but legends, which begin with a space or an exclamation mark."""


def key_range(
    url: str, match: MatchType = MatchType.EXACT, *, first: str = "", last: str = ""
) -> KeyRange:
    """Return the range of *url*; ValueError where such a URL has none.

    *first* and *last*, the beginnings of timestamps, narrow the range of an exact match; to the others
    they mean nothing, because captures are sorted by URL first.
    """
    if not url and match is MatchType.PREFIX:
        return EVERYTHING
    key = octets(surt(url))
    if match is MatchType.EXACT:
        start = key + b" " + first.encode() if first else key
        end = _following(key + b" " + last.encode()) if last else key + b"!"
        return KeyRange(start, end)
    if match is MatchType.PREFIX:
        key = _as_typed(url, key)
        return KeyRange(key, _following(key))
    host, paren, _ = key.partition(b")")
    if not paren:
        raise ValueError(f"{url!a} has no host, so there is no {match} of it")
    return KeyRange(host + b")/", host + (b"*" if match is MatchType.HOST else b"-"))


def _as_typed(url: str, key: bytes) -> bytes:
    """Return *key* with the slash or question mark that a SURT drops, and that a prefix may end in."""
    for mark in ("/", "?"):
        # The URL of a host alone keeps its slash.
        if url.endswith(mark) and not key.endswith(mark.encode()):
            return key + mark.encode()
    return key


def _following(key: bytes) -> bytes:
    """Return what comes behind everything that begins with *key*."""
    return key[:-1] + bytes([key[-1] + 1])
