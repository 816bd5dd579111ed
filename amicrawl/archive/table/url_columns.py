"""From the URL of a capture to the columns about it: one row at a time, and many rows at once.

A URL is cut at its delimiters and not changed: the path keeps its case, its escapes and its dots, the
query is there (as an empty text) where only its question mark is. `url_columns` says what the columns
are; `columns_of_urls` gives the same for a whole array, cutting URLs with a few passes
of numpy over their octets and looking up what is known about each host once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import (
    Octets,
    mask_from,
    numbers_from,
    numbers_of,
    octets_of,
    taken,
    texts_from,
    texts_of,
)
from amicrawl.archive.table.hosts import EMPTY_HOST, NO_HOST, Netloc, authority_columns, host_columns
from amicrawl.archive.table.schema import HOST_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_AFTER_SCHEME = re.compile(r"//([^/?#]*)([^?#]*)(\?[^#]*)?")
_TWO_SLASHES = re.compile(r"//[^/?#]")
_HTTP, _HTTPS = (int.from_bytes(begin, "little") for begin in (b"http://", b"https://"))
_SEVEN_OCTETS = np.uint64((1 << 56) - 1)
_SLASH, _QUESTION, _HASH = b"/?#"
_OCTET = np.uint64(0xFF)
_NONE = -1


class UrlColumns(NamedTuple):
    """What the columns of one row say about its URL."""

    protocol: str | None
    authority: Netloc
    path: str | None
    query: str | None


def url_columns(url: str) -> UrlColumns:
    """Return the columns for *url*; a part that it does not have is None. Never raises."""
    scheme = _SCHEME.match(url)
    if not scheme:
        return _without_host(None)
    protocol, rest = scheme[1].lower(), url[scheme.end() :]
    if protocol == "dns":
        return UrlColumns(protocol, _named(rest.rpartition("/")[2].partition("?")[0]), None, None)
    if protocol == "whois":
        return UrlColumns(protocol, _named(_target(rest)), None, None)
    if protocol in ("http", "https") and rest.startswith("/") and not _TWO_SLASHES.match(rest):
        # "http:/host/x", "https:////host/x": the slashes were miscounted.
        rest = "//" + rest.lstrip("/")
    if cut := _AFTER_SCHEME.match(rest):
        return UrlColumns(protocol, authority_columns(cut[1]), cut[2], cut[3] and cut[3][1:])
    if protocol == "mailto":
        path, mark, query = rest.partition("?")
        return UrlColumns(protocol, Netloc(EMPTY_HOST, None), path, query if mark else None)
    return _without_host(protocol)


def columns_of_urls(urls: pa.Array[Any]) -> dict[str, pa.Array[Any]]:
    """Return the columns for *urls*, by name: those about the host, `url_protocol` to `url_query`.

    What repeats comes as a dictionary. URLs of HTTP are cut all at once, others one by one.
    """
    cut = _cut(urls)
    spelled: Any = cut.authorities.dictionary_encode()
    known = [authority_columns(text) for text in spelled.dictionary.to_pylist()]
    which = numbers_of(spelled.indices)
    protocols = ["http", "https"]
    protocol = cut.is_https.astype(np.int32)
    path, query = cut.paths, cut.queries
    if len(cut.other):
        rows = [url_columns(url or "") for url in taken(urls, cut.other).to_pylist()]
        which = which.copy()
        which[cut.other] = np.arange(len(known), len(known) + len(rows))
        known += [row.authority for row in rows]
        protocol[cut.other] = np.arange(2, 2 + len(rows))
        protocols += [row.protocol for row in rows]  # type: ignore[misc]  # some have none
        mask = np.zeros(len(urls), np.bool_)
        mask[cut.other] = True
        path, query = (
            pc.replace_with_mask(column, mask_from(mask), texts_from(values))
            for column, values in (
                (path, [row.path for row in rows]),
                (query, [row.query for row in rows]),
            )
        )
    columns = _spread(known, which)
    columns["url_protocol"] = dictionary(protocols, protocol)
    return columns | {"url_path": path, "url_query": query}


class _Cut(NamedTuple):
    """URLs cut at their delimiters."""

    other: NDArray[np.int64]
    """The numbers of those that are not cut: all but plain ones of HTTP."""
    is_https: NDArray[np.bool_]
    authorities: pa.Array[Any]
    paths: pa.Array[Any]
    queries: pa.Array[Any]
    """Null where there is no question mark."""


def _cut(urls: pa.Array[Any]) -> _Cut:
    octets, places = octets_of(urls)
    starts, ends = places[:-1], places[1:]
    data = Octets(octets)
    words = data.words(starts)
    is_https = words == _HTTPS
    hosts = starts + 7 + is_https
    sound = (is_https | (words & _SEVEN_OCTETS == _HTTP)) & (hosts < ends)
    marks = np.flatnonzero((octets == _SLASH) | (octets == _QUESTION) | (octets == _HASH))
    host_ends = _next(marks, hosts, ends)
    sound &= host_ends > hosts
    behind_path = marks[octets[marks] != _SLASH]
    path_ends = _next(behind_path, host_ends, ends)
    has_query = sound & (path_ends < ends) & (data.words(path_ends) & _OCTET == _QUESTION)
    query_ends = _next(behind_path[octets[behind_path] == _HASH], path_ends, ends)
    query_starts = path_ends + has_query
    pieces = np.stack([hosts, host_ends, path_ends, query_starts, np.maximum(query_ends, query_starts)])
    pieces[:, ~sound] = starts[~sound]
    cuts = np.append(pieces.T.ravel(), ends[-1:]).astype(np.int32)
    tiled = texts_of(octets, cuts)
    first = np.arange(0, 5 * len(urls), 5)
    return _Cut(
        np.flatnonzero(~sound),
        is_https,
        taken(tiled, first),
        taken(tiled, first + 1),
        taken(tiled, first + 3, missing=~has_query),
    )


def _next(
    marks: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the first of *marks* from each of *starts* on; those of *ends* where none comes before."""
    if not len(marks):
        return ends
    found = np.minimum(np.searchsorted(marks, starts), len(marks) - 1)
    places = marks[found]
    return np.where((places >= starts) & (places < ends), places, ends)


def _spread(known: list[Netloc], which: NDArray[np.integer[Any]]) -> dict[str, pa.Array[Any]]:
    """Return the columns of the authorities *known*, one row for each place in *which*."""
    hosts = (
        zip(*[authority.host for authority in known], strict=True) if known else [()] * len(HOST_COLUMNS)
    )
    columns = {name: dictionary(values, which) for name, values in zip(HOST_COLUMNS, hosts, strict=True)}
    ports = np.array([_NONE if port is None else port for _, port in known], np.int32)[which]
    return columns | {"url_port": numbers_from(ports, missing=ports == _NONE)}


def dictionary(values: Sequence[str | None], which: NDArray[np.integer[Any]]) -> pa.Array[Any]:
    """Return the text at each place in *which*, with a dictionary of the different texts."""
    texts = [text for text in dict.fromkeys(values) if text is not None]
    numbers: dict[str | None, int] = {None: _NONE, **{text: at for at, text in enumerate(texts)}}
    places = np.array([numbers[value] for value in values], np.int32)[which]
    indices = numbers_from(places, missing=places == _NONE)
    return pa.DictionaryArray.from_arrays(indices, texts_from(texts))


def _named(name: str) -> Netloc:
    return Netloc(host_columns(name), None)


def _target(rest: str) -> str:
    """Return the name that a whois capture is about: of "//server/name", the last."""
    if not rest.startswith("//"):
        return rest
    server, _, name = rest[2:].partition("/")
    return name or server


def _without_host(protocol: str | None) -> UrlColumns:
    return UrlColumns(protocol, Netloc(NO_HOST, None), None, None)
