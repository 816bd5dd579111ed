"""The row of a URL and the row of a host, as tuples of Python numbers and as packed octets.

The octets are those of a frontier file's journal: a key and its value, little-endian, without gaps; they
are also what a table of rows holds. Fields and units are those of `format.schema`.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.meguri.format.schema import HOST_ROW, ROW, packing_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_URL = packing_of(ROW)
_OFFERED = Struct("<QQBfHBQI67x")
STATUS_OFFSET = 16
"""Where in the octets of a URL's row its status is."""
_HOST = packing_of(HOST_ROW)
assert _OFFERED.size == _URL.size
assert ROW.fields is not None
assert ROW.fields["status"][1] == STATUS_OFFSET
packed_row = _URL.pack
"""Pack the fields of a `UrlRow`."""
offered_row = _OFFERED.pack
"""Pack the row of a URL that was never requested: `host`, `path` and so on up to `first_seen`."""


class UrlRow(NamedTuple):
    """What the frontier knows of one URL."""

    host: int
    path: int
    status: int
    priority: float = 0.0
    depth: int = 0
    source: int = 0
    url_ref: int = 0
    first_seen: int = 0
    last_crawled: int = 0
    last_changed: int = 0
    next_due: int = 0
    rate: float = 0.0
    """Changes an hour, estimated; the format calls it lambda."""
    crawl_count: int = 0
    change_count: int = 0
    no_change_streak: int = 0
    etag_ref: int = 0
    last_modified: int = 0
    content_fp: int = 0
    simhash: int = 0
    http_status: int = 0
    redirect_ref: int = 0
    retry_count: int = 0
    error_count: int = 0

    def packed(self) -> bytes:
        """Return the row as octets."""
        return _URL.pack(*self)

    def with_status(self, status: int) -> UrlRow:
        """Return the row with another status; `_replace` takes three times as long."""
        return UrlRow(self[0], self[1], status, *self[3:])

    def with_reference(self, reference: int) -> UrlRow:
        """Return the row with another `url_ref`."""
        return UrlRow._make((*self[:6], reference, *self[7:]))

    def changed(self, *fields: Mapping[str, float]) -> UrlRow:
        """Return the row with other *fields*, the last of a name; `_replace` takes twice as long."""
        values: list[float] = [*self]
        for some in fields:
            for name, value in some.items():
                values[_PLACES[name]] = value
        return tuple.__new__(UrlRow, values)

    @classmethod
    def unpacked(cls, octets: bytes | memoryview) -> UrlRow:
        """Return the row that *octets* hold; `_make` would count the fields once more."""
        return tuple.__new__(cls, _URL.unpack(octets))


_PLACES = {name: place for place, name in enumerate(UrlRow._fields)}
_priority_and_reference = Struct("<17xf3xQ").unpack_from


def priority_and_reference(octets: bytes) -> tuple[float, int]:
    """Return `priority` and `url_ref` of the row that *octets* hold: all that its place depends on."""
    priority, reference = _priority_and_reference(octets)
    return priority, reference


class HostRow(NamedTuple):
    """What the frontier knows of one host group."""

    host: int
    host_ref: int = 0
    grouping: int = 0
    registrable_ref: int = 0
    resolved_ip: bytes = bytes(16)
    ip_expiry: int = 0
    robots_fetched: int = 0
    robots_expiry: int = 0
    robots_ref: int = 0
    crawl_delay: int = 0
    host_next_eligible: int = 0
    ip_next_eligible: int = 0
    url_budget: int = 0
    url_count: int = 0
    depth_cap: int = 0
    host_score: float = 0.0
    crawl_total: int = 0
    error_total: int = 0
    avg_latency: int = 0
    flags: int = 0

    def packed(self) -> bytes:
        """Return the row as octets."""
        return _HOST.pack(*self)

    def changed(self, **fields: object) -> HostRow:
        """Return the row with other *fields*; `_replace` takes twice as long."""
        values: list[object] = [*self]
        for name, value in fields.items():
            values[_HOST_PLACES[name]] = value
        return tuple.__new__(HostRow, values)

    @classmethod
    def unpacked(cls, octets: bytes | memoryview) -> HostRow:
        """Return the row that *octets* hold."""
        return tuple.__new__(cls, _HOST.unpack(octets))


_HOST_PLACES = {name: place for place, name in enumerate(HostRow._fields)}
