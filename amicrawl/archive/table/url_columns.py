"""From the URL of a capture to the columns about it and its host: one row at a time, and many at once.

A URL is cut at its delimiters and not changed: the path keeps its case, its escapes and its dots, the
query is there (as an empty text) where only its question mark is. `url_columns` says what the columns
are; `columns_of_urls` gives the same for a whole array, cutting URLs with a few passes
of numpy over their octets and looking up what is known about each host once.

A host that is an address has a name and nothing else. Names are lower case and in ASCII form (IDNA 2003,
as the tables that exist have them, so that emoji and unassigned characters work); a name that cannot be
written so is not a host. Percent-escapes are decoded once. What DNS forbids is left alone.

The registry suffix is what registries sell names under (`co.uk`); the private suffix may also be that of
a company under whose names others have theirs (`blogspot.com`). The rules are those of the tables that
exist, which differ from the text of the Public Suffix List in two places: a name that no rule covers has
no suffix, and the name of an exception is its own suffix and its own domain. The list is the one that
the installed `publicsuffixlist` package carries; nothing goes to the network.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from publicsuffixlist import PSLFILE, PublicSuffixList

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
from amicrawl.archive.table.schema import HOST_COLUMNS
from amicrawl.urls import covered_by_rules, exceptions

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


LONGEST_LABEL = 63
"""Octets of a label that DNS allows; a domain whose own label is longer is none."""

_LABELS = 16
"""More than any rule has; further labels in front do not matter."""
_VERSION = re.compile(r"//\s*VERSION:\s*(\S{1,64})")
_LINES_AT_THE_TOP = 40


class SuffixAndDomain(NamedTuple):
    """What one section of the list says about a host."""

    suffix: str | None
    domain: str | None
    """The suffix and one label more; None where the host is the suffix."""


NOTHING = SuffixAndDomain(None, None)


class Suffixes(NamedTuple):
    """Both values for a host."""

    registry: SuffixAndDomain
    private: SuffixAndDomain


def suffixes_of(labels: Sequence[str]) -> Suffixes:
    """Return the suffixes and domains of the host with *labels*: lower case, ASCII, not an address."""
    labels = labels[-_LABELS:]
    registry, private = (_applied(each, labels) for each in _lists())
    if private.suffix is None or "." not in private.suffix:
        private = registry
    return Suffixes(registry, private)


@cache
def list_version() -> str:
    """Return the version that the installed list states for itself; "unknown" where it states none."""
    with Path(PSLFILE).open(encoding="utf-8") as lines:
        for _, line in zip(range(_LINES_AT_THE_TOP), lines, strict=False):
            if found := _VERSION.match(line):
                return found[1]
    return "unknown"


@cache
def _lists() -> tuple[PublicSuffixList, PublicSuffixList]:
    """Return the first section of the list, and all of it."""
    whole = PublicSuffixList(accept_unknown=False)
    return PublicSuffixList(accept_unknown=False, only_icann=True), whole


@cache
def _exceptions() -> tuple[str, ...]:
    return tuple(f".{name}" for name in exceptions())


def _applied(rules: PublicSuffixList, labels: Sequence[str]) -> SuffixAndDomain:
    host = ".".join(labels)
    if not labels[-1]:
        return NOTHING  # the list's own search would leave out the dot behind a name
    if f".{host}".endswith(_exceptions()):
        name = next(name for name in exceptions() if f".{host}".endswith(f".{name}"))
        return SuffixAndDomain(name, name)
    suffix = rules.publicsuffix(covered_by_rules(host))
    if suffix is None:
        return NOTHING
    listed = suffix.count(".") + 1
    if len(labels) <= listed or not 0 < len(labels[-listed - 1]) <= LONGEST_LABEL:
        return SuffixAndDomain(suffix, None)
    return SuffixAndDomain(suffix, f"{labels[-listed - 1]}.{suffix}")


LONGEST_CONVERTED = 1024
"""Characters of a name beyond ASCII that is converted; DNS ends at 253, and the work grows fast."""

# 750 bytes each. Lines come by host, so that a host that was left is hardly met again.
_REMEMBERED = 8_192
_NUMBERS = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,10}){0,3}")
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[^\]]*)?\]")
_PORT = re.compile(r"[0-9]{1,10}")
_LARGEST_PORT = 2**31 - 1


class HostColumns(NamedTuple):
    """The host columns of one row, in the order of the table; None where there is no such thing."""

    name: str | None = None
    tld: str | None = None
    second_last_part: str | None = None
    third_last_part: str | None = None
    fourth_last_part: str | None = None
    fifth_last_part: str | None = None
    registry_suffix: str | None = None
    registered_domain: str | None = None
    private_suffix: str | None = None
    private_domain: str | None = None
    name_reversed: str | None = None


NO_HOST = HostColumns()
EMPTY_HOST = HostColumns(name="", tld="", name_reversed="")


class Netloc(NamedTuple):
    """What stands between `//` and the path, user information left out."""

    host: HostColumns
    port: int | None
    """As written, also where it is the default; None where there is none or no number."""


@lru_cache(maxsize=_REMEMBERED)
def authority_columns(text: str) -> Netloc:
    """Return the columns for *text*, the authority of a URL as written."""
    named = text.rpartition("@")[2]
    if named.startswith("["):
        literal, bracket, rest = named.partition("]")
        host, port = literal + bracket, rest.removeprefix(":")
    else:
        host, _, port = named.partition(":")
    number = int(port) if _PORT.fullmatch(port) else None
    return Netloc(host_columns(host), number if number is None or number <= _LARGEST_PORT else None)


def host_columns(written: str) -> HostColumns:
    """Return the columns for the host *written*, without port."""
    if not written:
        return EMPTY_HOST
    if _IPV6.fullmatch(written):
        return HostColumns(name=written.lower())
    if address := _ipv4(written):
        return HostColumns(name=address)
    name = _ascii_name(written)
    if name is None:
        return NO_HOST
    labels = name.split(".")
    parts = [labels[-place] if place <= len(labels) else None for place in range(1, 6)]
    registry, private = suffixes_of(labels)
    return HostColumns._make([name, *parts, *registry, *private, ".".join(reversed(labels))])


def _ascii_name(written: str) -> str | None:
    """Return *written* in lower-case ASCII without its one trailing dot; None where that fails."""
    if "%" in written:
        written = unquote_to_bytes(written.encode("utf-8", "replace")).decode("utf-8", "replace")
    if not written.isascii():
        if len(written) > LONGEST_CONVERTED:
            return None
        try:
            written = written.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return written.lower().removesuffix(".")


def _ipv4(written: str) -> str | None:
    """Return *written* as a dotted quad if it is decimal numbers that make up an IPv4 address."""
    if not _NUMBERS.fullmatch(written):
        return None
    *leading, last = map(int, written.split("."))
    if any(number > 255 for number in leading) or last >= 256 ** (4 - len(leading)):
        return None
    total = last + sum(number << 24 - 8 * place for place, number in enumerate(leading))
    return ".".join([str(total >> shift & 0xFF) for shift in (24, 16, 8, 0)])
