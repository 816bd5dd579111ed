"""A waiting row as bytes, which sort as the rows of a host come up.

    u64 order | u64 number | u64 path key | u8 source | u8 status | u32 hops | u32 attempt | texts

What a million queued URLs cost is mostly what their objects cost, so a row waits as one byte string, and
a heap compares two of them without a line of Python. All numbers are big-endian, as sorting demands.
The order is the priority turned round, so that greater comes first; the number is that of the offer.
The host key and `extra` are kept beside it. The texts are those of the seed, UTF-8 (lone surrogates
included): the URL alone or, where its producer knew more, all of them behind their lengths.

For this process only: it is no file format.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from amicrawl.frontier.row import Offer, Source
from amicrawl.frontier.states import Status
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

_HEAD = Struct(">QQQBBII")
_ORDER = Struct(">Q")
_LENGTHS = Struct(">6I")
_SOURCES = tuple(Source)
_STATUSES = {int(status): status for status in Status}
_MORE = 0x80
"""Set in the byte of the source where the texts are several."""
_ZERO = 2**63
"""The order of priority 0; what does not fit 64 bits is taken as the nearest that does."""


class WaitingRow(NamedTuple):
    """A row as it waits."""

    offer: Offer
    number: int
    """How many rows were known when it was offered, itself included: its place within a priority."""
    status: Status
    attempt: int
    """The number that the next attempt will have."""


def pack(row: WaitingRow) -> bytes:
    """Return *row* without its host key and its `extra`."""
    offer = row.offer
    seed = offer.seed
    source = int(offer.source)
    if seed.digest or seed.etag or seed.last_modified or seed.captured_at or seed.meta_json:
        source |= _MORE
        texts = _pack_texts(
            seed.url, seed.digest, seed.etag, seed.last_modified, str(seed.captured_at), seed.meta_json
        )
    else:
        texts = seed.url.encode("utf-8", "surrogatepass")
    order = min(max(_ZERO - offer.priority, 0), 2 * _ZERO - 1)
    head = _HEAD.pack(order, row.number, offer.key[1], source, row.status, offer.hops, row.attempt)
    return head + texts


def unpack(packed: bytes, *, host: int) -> WaitingRow:
    """Return the row that `pack` made of one for the host key *host*; its `extra` is None."""
    order, number, path, source, status, hops, attempt = _HEAD.unpack_from(packed)
    if source & _MORE:
        source ^= _MORE
        url, digest, etag, last_modified, captured_at, meta_json = _texts(packed)
        seed = Seed(url, digest, etag, last_modified, int(captured_at), meta_json)
    else:
        seed = Seed(packed[_HEAD.size :].decode("utf-8", "surrogatepass"))
    offer = Offer(seed, UrlKey(host, path), _SOURCES[source], _ZERO - order, hops)
    return WaitingRow(offer, number, _STATUSES[status], attempt)


def order_of(packed: bytes) -> int:
    """Return minus the priority of the row that `pack` made."""
    order: int = _ORDER.unpack_from(packed)[0]
    return order - _ZERO


def _pack_texts(*texts: str) -> bytes:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return _LENGTHS.pack(*map(len, encoded)) + b"".join(encoded)


def _texts(packed: bytes) -> list[str]:
    start = _HEAD.size + _LENGTHS.size
    texts = []
    for length in _LENGTHS.unpack_from(packed, _HEAD.size):
        texts.append(packed[start : start + length].decode("utf-8", "surrogatepass"))
        start += length
    return texts
