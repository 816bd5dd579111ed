"""All that a source says of one URL row and of its host, decoded. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any

import numpy as np

from amicrawl.cli.frontier.output import (
    as_text_field,
    flag_names,
    float_value,
    hour_text,
    key_text,
    second_text,
    source_name,
    status_name,
)
from amicrawl.config import Identity
from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.schema import HOST_COLUMNS, URL_COLUMNS, Codec
from amicrawl.frontier.format.strings import annex_at, string_at, unpack_robots
from amicrawl.frontier.state import IDENTITY
from amicrawl.urls import seed_key as seeded_key
from amicrawl.urls import url_key

if TYPE_CHECKING:
    from amicrawl.cli.frontier.source import Source
    from amicrawl.urls import UrlKey

_HOURS = ("first_seen", "last_crawled", "last_changed", "next_due", "last_modified")
_HOST_HOURS = ("ip_expiry", "robots_fetched", "robots_expiry")
_HOST_SECONDS = ("host_next_eligible", "ip_next_eligible")
_KEYS = ("host_key", "path_key", "content_fp", "simhash")
_STRINGS = {"url_ref": "url", "etag_ref": "etag", "redirect_ref": "redirect"}
_HOST_STRINGS = {"host_ref": "host", "registrable_ref": "registrable"}


@dataclass(frozen=True, slots=True)
class Match:
    """Where a URL was found."""

    row: int
    key: UrlKey
    convention: str
    """By which reading of the URL: the words that finish "matched by its ..."."""


def conventions(source: Source, url: str) -> list[tuple[str, UrlKey]]:
    """Return the keys under which *url* may be found, likeliest first, and what each is made of."""
    said = dict(source.meta).get(IDENTITY, b"")
    exact, canonical = (
        ("URL as written", url_key(url, Identity.EXACT)),
        ("canonical form", url_key(url, Identity.CANONICAL)),
    )
    first = [exact, canonical] if said == b"exact" else [canonical, exact]
    return [*first, ("host and remainder, cut but not normalised", seeded_key(url))]


def find(source: Source, url: str) -> Match | None:
    """Return the row of *url* by the first convention that leads to one."""
    hosts = source.url_column("host_key")
    paths: np.ndarray | None = None
    for convention, key in conventions(source, url):
        first = int(np.searchsorted(hosts, np.uint64(key.host)))
        end = int(np.searchsorted(hosts, np.uint64(key.host), "right"))
        if first == end:
            continue
        paths = source.url_column("path_key") if paths is None else paths
        row = first + int(np.searchsorted(paths[first:end], np.uint64(key.path)))
        if row < end and int(paths[row]) == key.path:
            return Match(row, key, convention)
    return None


def row_facts(source: Source, row: int) -> dict[str, Any]:
    """Return every field of URL row *row*, then its strings and annexes, as JSON values.

    Beside a time in hours stands the date as `<name>_at`, null for never.
    """
    names = [column.name for column in URL_COLUMNS]
    fields = source.rows(np.array([row]), names)
    facts: dict[str, Any] = {"row": row}
    for name in names:
        facts[name] = _plain(fields[name][0], is_key=name in _KEYS)
        if name == "status":
            facts["status_name"] = status_name(facts[name])
        elif name == "source":
            facts["source_name"] = source_name(facts[name])
        elif name in _HOURS:
            facts[f"{name}_at"] = hour_text(facts[name])
    arena = source.arena()
    for ref, name in _STRINGS.items():
        facts |= as_text_field(name, string_at(arena, facts[ref]))
        annex = annex_at(arena, facts[ref]) if name != "redirect" else None
        if annex is not None:
            facts[f"{name}_annex"] = _json_or_text(annex)
    return facts


def host_facts(source: Source, host_key: int) -> dict[str, Any] | None:
    """Return every field of the host row with *host_key*, decoded as in `row_facts`, if there is one."""
    keys = source.host_column("host_key")
    row = int(np.searchsorted(keys, np.uint64(host_key)))
    if row == len(keys) or int(keys[row]) != host_key:
        return None
    facts: dict[str, Any] = {"row": row}
    for column in HOST_COLUMNS:
        name = column.name
        value = source.host_column(name)[row]
        if name == "resolved_ip":
            facts[name] = _address(value.tobytes())
            continue
        facts[name] = _plain(value, is_key=name == "host_key")
        if name in _HOST_HOURS:
            facts[f"{name}_at"] = hour_text(facts[name])
        elif name in _HOST_SECONDS:
            facts[f"{name}_at"] = second_text(facts[name])
        elif name == "flags":
            facts["flag_names"] = flag_names(facts[name])
    arena = source.arena()
    for ref, name in _HOST_STRINGS.items():
        facts |= as_text_field(name, string_at(arena, facts[ref]))
    blob = string_at(arena, facts["robots_ref"])
    if blob is not None:
        facts |= _robots(blob)
    return facts


def _plain(value: Any, *, is_key: bool) -> Any:
    plain = value.item()
    if is_key:
        return key_text(plain)
    return float_value(plain) if isinstance(plain, float) else plain


def _address(octets: bytes) -> str | None:
    if not any(octets):
        return None
    address = IPv6Address(octets)
    return str(address.ipv4_mapped or address)


def _robots(blob: bytes) -> dict[str, Any]:
    try:
        return as_text_field("robots", unpack_robots(blob, Codec.ZSTD))
    except Malformed as error:
        return {"robots": None, "robots_fault": error.reason}


def _json_or_text(annex: bytes) -> Any:
    try:
        return json.loads(annex, parse_constant=str)
    except (ValueError, RecursionError):
        return annex.decode("utf-8", "backslashreplace")
