"""Discovery batches: links that were found, on their way to the partition that owns their hosts.

    nothing at all where there are no links; otherwise, the links sorted by key, column by column:

    uvarint links
    uvarints           host half of the key, minus the one before (the first: minus 0)
    zigzag uvarints    path half of the key, minus the one before, modulo 2^64
    uvarints           depth
    u8 each            source
    zigzag uvarints    host key of the page, minus the one before, modulo 2^64
    f32 each           weight
    u8 each            anchor hint
    zigzag uvarints    hour of the discovery, minus the one before
    uvarints           offset of the URL among the spans, minus the one before
    uvarint, octets    symbol table of the URLs (see `fsst`)
    uvarint, octets    spans of the URLs

Little-endian throughout. The same links always give the same octets. A body is read as a whole or not at
all: whatever a writer would not have written is refused, and nothing in it can ask for more room than
some twenty times its own size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.fsst import PackedStrings, pack, unpack
from amicrawl.frontier.format.varints import (
    decode_uvarints,
    encode_uvarints,
    read_uvarint,
    unzigzag,
    write_uvarint,
    zigzag,
)
from amicrawl.urls import UrlKey, octets, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_LEAST: Final = 13
"""Octets that a link takes at least, the span of an empty URL among them."""


class Discovery(NamedTuple):
    """A URL that a page led to."""

    key: UrlKey
    url: str
    depth: int = 0
    """Links that led here, 0 to 65,535."""
    source: int = 1
    """How it was found; the numbers are those of `Source`, and others, up to 255, are handed on."""
    source_host: int = 0
    """Host key of the page; 0 where it is not known."""
    weight: float = 0.0
    """Of single precision; NaN and infinities are handed on."""
    anchor_hint: int = 0
    """0 to 255."""
    observed_at: int = 0
    """Hours since 1970, 32 bits."""


def encode_batch(discoveries: Iterable[Discovery]) -> bytes:
    """Return *discoveries* as a body; those with one key stay in the order in which they come."""
    rows = sorted(discoveries, key=lambda row: row.key)
    if not rows:
        return b""
    strings = pack([octets(row.url) for row in rows])
    body = [
        write_uvarint(len(rows)),
        encode_uvarints(_differences(row.key.host for row in rows)),
        encode_uvarints(zigzag(_differences(row.key.path for row in rows))),
        encode_uvarints(np.fromiter((row.depth for row in rows), np.uint64)),
        bytes([row.source for row in rows]),
        encode_uvarints(zigzag(_differences(row.source_host for row in rows))),
        np.fromiter((row.weight for row in rows), "<f4").tobytes(),
        bytes([row.anchor_hint for row in rows]),
        encode_uvarints(zigzag(_differences(row.observed_at for row in rows))),
        encode_uvarints(_differences(strings.references)),
        write_uvarint(len(strings.table)),
        strings.table,
        write_uvarint(len(strings.spans)),
        strings.spans,
    ]
    return b"".join(body)


def decode_batch(body: bytes) -> list[Discovery]:
    """Return the links of *body*, sorted by key; Malformed where it is not just what a writer makes."""
    if not body:
        return []
    links, at = read_uvarint(body, 0)
    if not links or links > len(body) // _LEAST:
        raise Malformed(f"{links} links in {len(body)} octets")
    columns = _Columns(body, at, links)
    hosts = _sums(columns.numbers())
    paths = _sums(unzigzag(columns.numbers()))
    _check_order(hosts, paths)
    depths = _bounded(columns.numbers(), 0xFFFF, "depth")
    sources = columns.fixed("u1")
    source_hosts = _sums(unzigzag(columns.numbers()))
    weights = columns.fixed("<f4")
    hints = columns.fixed("u1")
    hours = _bounded(_sums(unzigzag(columns.numbers())), 0xFFFF_FFFF, "hour")
    references = _sums(columns.numbers())
    strings = PackedStrings(references.tolist(), columns.block(), columns.block())
    if columns.at != len(body):
        raise Malformed("more behind the last string", at=columns.at)
    keys = map(UrlKey, hosts.tolist(), paths.tolist())
    numbers = (depths, sources, source_hosts, weights, hints, hours)
    return list(
        map(Discovery, keys, map(text_of, unpack(strings)), *(column.tolist() for column in numbers))
    )


class _Columns:
    """What is left of a body."""

    def __init__(self, body: bytes, at: int, links: int) -> None:
        self._body = body
        self._links = links
        self.at = at

    def numbers(self) -> np.ndarray:
        numbers, used = decode_uvarints(self._body, self._links, at=self.at)
        self.at += used
        return numbers

    def fixed(self, kind: str) -> np.ndarray:
        width = np.dtype(kind).itemsize * self._links
        if width > len(self._body) - self.at:
            raise Malformed("a column is cut short", at=self.at)
        values = np.frombuffer(self._body, kind, self._links, self.at)
        self.at += width
        return values

    def block(self) -> bytes:
        length, begin = read_uvarint(self._body, self.at)
        if length > len(self._body) - begin:
            raise Malformed("strings are cut short", at=begin)
        self.at = begin + length
        return self._body[begin : self.at]


def _differences(numbers: Iterable[int]) -> np.ndarray:
    values = np.fromiter(numbers, np.uint64)
    values[1:] -= values[:-1].copy()
    return values


def _sums(differences: np.ndarray) -> np.ndarray:
    return np.cumsum(differences, dtype=np.uint64)


def _bounded(values: np.ndarray, most: int, name: str) -> np.ndarray:
    if int(values.max()) > most:
        raise Malformed(f"a {name} of more than {most}")
    return values


def _check_order(hosts: np.ndarray, paths: np.ndarray) -> None:
    # A sum that wraps around is less than the one before.
    before, after = hosts[:-1], hosts[1:]
    if ((after < before) | ((after == before) & (paths[1:] < paths[:-1]))).any():
        raise Malformed("links that are not sorted by key")
