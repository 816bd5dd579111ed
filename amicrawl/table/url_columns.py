"""From the URL of a capture to the columns about it: one row at a time, and many rows at once.

A URL is cut at its delimiters and not changed: the path keeps its case, its escapes and its dots, the
query is there (as an empty text) where only its question mark is. `url_columns` says what the columns
are; `columns_of_urls` gives the same for a whole array, cutting URLs with one pass of a regular
expression in Arrow and looking up what is known about each host once.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.table.hosts import EMPTY_HOST, NO_HOST, Authority, authority_columns, host_columns

HOST_COLUMNS = (
    "url_host_name",
    "url_host_tld",
    "url_host_2nd_last_part",
    "url_host_3rd_last_part",
    "url_host_4th_last_part",
    "url_host_5th_last_part",
    "url_host_registry_suffix",
    "url_host_registered_domain",
    "url_host_private_suffix",
    "url_host_private_domain",
    "url_host_name_reversed",
)
"""The columns about a host, in the order of `HostColumns`."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_AFTER_SCHEME = re.compile(r"//([^/?#]*)([^?#]*)(\?[^#]*)?")
_TWO_SLASHES = re.compile(r"//[^/?#]")
# The same cut for RE2, and only for what needs no second look.
_ORDINARY = (
    r"^(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://(?P<authority>[^/?#]+)(?P<path>[^?#]*)(?P<query>\?[^#]*)?"
)


class UrlColumns(NamedTuple):
    """What the columns of one row say about its URL."""

    protocol: str | None
    authority: Authority
    path: str | None
    query: str | None


def url_columns(url: str) -> UrlColumns:
    """Return the columns for *url*; whatever cannot be told is None, and nothing raises."""
    scheme = _SCHEME.match(url)
    if not scheme:
        return _without_host(None)
    protocol, rest = scheme[1].lower(), url[scheme.end() :]
    if protocol == "dns":
        return UrlColumns(protocol, _named(rest.rpartition("/")[2].partition("?")[0]), None, None)
    if protocol == "whois":
        return UrlColumns(protocol, _named(_asked_for(rest)), None, None)
    if protocol in ("http", "https") and rest.startswith("/") and not _TWO_SLASHES.match(rest):
        # "http:/host/x", "https:////host/x": the slashes were miscounted.
        rest = "//" + rest.lstrip("/")
    if cut := _AFTER_SCHEME.match(rest):
        return UrlColumns(protocol, authority_columns(cut[1]), cut[2], cut[3] and cut[3][1:])
    if protocol == "mailto":
        path, mark, query = rest.partition("?")
        return UrlColumns(protocol, Authority(EMPTY_HOST, None), path, query if mark else None)
    return _without_host(protocol)


def columns_of_urls(urls: pa.Array[Any]) -> dict[str, pa.Array[Any]]:
    """Return the columns for *urls*, by name: those about the host, `url_protocol` to `url_query`."""
    cut = pc.extract_regex(urls, pattern=_ORDINARY)
    spelled = cut.field("authority").dictionary_encode()
    known = [authority_columns(text) for text in spelled.dictionary.to_pylist()]
    which = spelled.indices.fill_null(0).to_numpy(zero_copy_only=False)
    protocol = pc.ascii_lower(cut.field("scheme"))
    path, marked = cut.field("path"), cut.field("query")
    query = pc.if_else(
        pc.equal(marked, pa.scalar("")), pa.scalar(None, pa.string()), pc.utf8_slice_codeunits(marked, 1)
    )
    if cut.null_count:
        other = cut.is_null().to_numpy(zero_copy_only=False)
        rows = [url_columns(url or "") for url in urls.filter(pa.array(other)).to_pylist()]
        which = which.copy()
        which[other] = np.arange(len(known), len(known) + len(rows))
        known += [row.authority for row in rows]
        protocol, path, query = (
            pc.replace_with_mask(column, pa.array(other), pa.array(values, pa.string()))
            for column, values in (
                (protocol, [row.protocol for row in rows]),
                (path, [row.path for row in rows]),
                (query, [row.query for row in rows]),
            )
        )
    columns = _spread(known, pa.array(which))
    return columns | {"url_protocol": protocol, "url_path": path, "url_query": query}


def _spread(known: list[Authority], which: pa.Array[Any]) -> dict[str, pa.Array[Any]]:
    """Return the columns of the authorities *known*, one row for each place in *which*."""
    hosts = (
        zip(*[authority.host for authority in known], strict=True) if known else [()] * len(HOST_COLUMNS)
    )
    columns = {
        name: pa.array(values, pa.string()).take(which)
        for name, values in zip(HOST_COLUMNS, hosts, strict=True)
    }
    ports = pa.array([authority.port for authority in known], pa.int32())
    return columns | {"url_port": ports.take(which)}


def _named(name: str) -> Authority:
    return Authority(host_columns(name), None)


def _asked_for(rest: str) -> str:
    """Return the name that a whois capture is about: of "//server/name", the last."""
    if not rest.startswith("//"):
        return rest
    server, _, name = rest[2:].partition("/")
    return name or server


def _without_host(protocol: str | None) -> UrlColumns:
    return UrlColumns(protocol, Authority(NO_HOST, None), None, None)
