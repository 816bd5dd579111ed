"""A CDX query: the parameters of a CDX server, checked and parsed. Pure.

The parameters are those of pywb's server, and of the Internet Archive's where pywb has none: url,
matchType, from, to, resolveRevisits, filter, collapse, collapseTime, sort, closest, offset, limit,
fields (fl), output, page, pageSize, showNumPages. An unknown parameter is refused: a response without
the filter that was meant would look like one with it.

The range. Keys are SURTs, and lines are in byte order, so all captures of a URL, a path, a host, or a
domain with its subdomains are neighbours. A range is [start, end) of whole lines:

    exact    the URL                         key                to  key!
    prefix   URLs that begin with it         key                to  key with its last byte one higher
    host     all of the host                 com,example)/      to  com,example*
    domain   the host and its subdomains     com,example)/      to  com,example-

Filters are `[!][=|~]field:value`. Without a mark the field contains the value; `=` compares the whole
field, `~` matches a regular expression at its beginning; `!` inverts. Without a field the whole line is
looked at. Expressions come from clients, so they are those of RE2, which takes linear time; back
references and look-around are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.index.lookup.query import FORMATS, field_name
from amicrawl.errors import UsageError
from amicrawl.urls import octets, surt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amicrawl.archive.index.lookup.query import IndexRow


PAGE_SIZE = 10
"""Blocks of a page, where the request does not say."""
MOST_BLOCKS = 50
"""Blocks of a page at most."""
LONGEST_URL = 16_384
"""Characters of a URL that is looked up."""
MOST_FILTERS = 20
"""Filters, or fields to collapse by, of one request."""

_KNOWN = frozenset(
    {
        *("url", "matchType", "from", "to", "filter", "collapse", "collapseTime", "sort", "closest"),
        *("offset", "limit", "fields", "fl", "output", "page", "pageSize", "showNumPages"),
        "resolveRevisits",
    }
)
_REPEATED = frozenset({"filter", "collapse"})
_IGNORED = frozenset({"gzip", "allowFuzzy"})
"""Sent by clients of other servers to switch off what is never on here."""
_NUMBER = re.compile(r"[0-9]{1,12}")
_TIMESTAMP = re.compile(r"[0-9]{1,14}")
_YES = frozenset({"true", "1"})
_NO = frozenset({"false", "0", ""})


class Collapse(NamedTuple):
    """Of neighbouring lines whose fields begin alike, only the first is wanted."""

    fields: tuple[tuple[str, int | None], ...]
    """Each field with how many characters of it count; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CdxRequest:
    """A request that has been checked."""

    range: KeyRange
    first: str = ""
    """Captures from this beginning of a timestamp on; empty for all."""
    last: str = ""
    """Captures up to this one, with all that it is the beginning of."""
    resolves: bool = False
    """Whether revisits get the fields of their originals."""
    filters: tuple[Filter, ...] = ()
    collapses: tuple[Collapse, ...] = ()
    reverse: bool = False
    closest: str = ""
    """Order by distance to this timestamp; empty for the order of the index."""
    offset: int = 0
    limit: int | None = None
    """Most lines of the response; negative for the last ones."""
    fields: tuple[str, ...] = ()
    """Fields of the response; empty for all."""
    output: str = "cdxj"
    page: int | None = None
    """Which page is wanted, from 0; None for all of them."""
    page_size: int = PAGE_SIZE
    counts_pages: bool = False
    """Whether only the number of pages is requested."""


def request_of(parameters: Mapping[str, Sequence[str]]) -> CdxRequest:
    """Read a request; UsageError, with a sentence for the client, where it is not valid."""
    given = _single(parameters)
    first, last = _timestamp(given, "from"), _timestamp(given, "to")
    closest = _timestamp(given, "closest")
    sort = given.get("sort", "")
    if sort not in {"", "default", "reverse", "closest"} or (sort == "closest" and not closest):
        raise UsageError("sort= is reverse, or closest together with closest=TIMESTAMP.")
    if sort == "reverse" and closest:
        raise UsageError("sort=reverse and closest= contradict each other. Leave one out.")
    page_size = _number(given, "pageSize") or PAGE_SIZE
    if page_size > MOST_BLOCKS:
        raise UsageError(f"pageSize= is {MOST_BLOCKS} at most.")
    resolves = _flag(given, "resolveRevisits")
    return CdxRequest(
        # An original may be older than the time that is requested.
        range=_range(given) if resolves else _range(given, first=first, last=last),
        first=first,
        last=last,
        resolves=resolves,
        filters=tuple(filter_of(written) for written in _several(parameters, "filter")),
        collapses=_collapses(given, _several(parameters, "collapse")),
        reverse=sort == "reverse",
        closest=closest,
        offset=_number(given, "offset") or 0,
        limit=_limit(given),
        fields=_fields(given),
        output=_output(given),
        page=_number(given, "page"),
        page_size=page_size,
        counts_pages=_flag(given, "showNumPages"),
    )


def _single(parameters: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the parameters that may be given once."""
    single = {}
    for name, values in parameters.items():
        if name in _IGNORED:
            continue
        if name not in _KNOWN:
            raise UsageError(f"{name[:50]!a} is not a known parameter. Leave it out.")
        if name not in _REPEATED:
            if len(values) != 1:
                raise UsageError(f"{name}= is given {len(values)} times. Give it once.")
            single[name] = values[0]
    return single


def _several(parameters: Mapping[str, Sequence[str]], name: str) -> Sequence[str]:
    values = parameters.get(name, ())
    if len(values) > MOST_FILTERS:
        raise UsageError(f"{name}= is given {len(values)} times; {MOST_FILTERS} is the most.")
    return values


def _range(given: Mapping[str, str], *, first: str = "", last: str = "") -> KeyRange:
    url, match = given.get("url", "").strip(), MatchType.EXACT
    if not url:
        raise UsageError("url= is missing. Say which URL, host or domain is looked for.")
    if len(url) > LONGEST_URL:
        raise UsageError(f"url= has more than {LONGEST_URL} characters.")
    if wanted := given.get("matchType"):
        try:
            match = MatchType(wanted)
        except ValueError as error:
            raise UsageError(f"matchType= is one of {', '.join(MatchType)}.") from error
    else:
        url, match = wildcard(url)
    try:
        return key_range(url, match, first=first, last=last)
    except ValueError as error:
        raise UsageError(
            f"{error}. Name a URL with a host, or look for it with matchType=exact."
        ) from error


def _timestamp(given: Mapping[str, str], name: str) -> str:
    value = given.get(name, "")
    if value and not _TIMESTAMP.fullmatch(value):
        raise UsageError(f"{name}= is the beginning of a timestamp: 4 to 14 digits of YYYYMMDDhhmmss.")
    return value


def _number(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name, "")
    if not value:
        return None
    if not _NUMBER.fullmatch(value):
        raise UsageError(f"{name}= is a number without a sign.")
    return int(value)


def _limit(given: Mapping[str, str]) -> int | None:
    value = given.get("limit", "")
    if not value:
        return None
    if not _NUMBER.fullmatch(value.removeprefix("-")) or not int(value):
        raise UsageError("limit= is a number: the first lines, or with a minus sign the last.")
    return int(value)


def _flag(given: Mapping[str, str], name: str) -> bool:
    value = given.get(name, "").lower()
    if value not in _YES | _NO:
        raise UsageError(f"{name}= is true or false.")
    return value in _YES


def _fields(given: Mapping[str, str]) -> tuple[str, ...]:
    if "fields" in given and "fl" in given:
        raise UsageError("fields= and fl= are the same. Give one of them.")
    names = (given.get("fields") or given.get("fl") or "").split(",")
    return tuple(field_name(name.strip()) for name in names if name.strip())


def _output(given: Mapping[str, str]) -> str:
    output = given.get("output") or "cdxj"
    if output not in FORMATS:
        raise UsageError(f"output= is one of {', '.join(FORMATS)}.")
    return output


def _collapses(given: Mapping[str, str], written: Sequence[str]) -> tuple[Collapse, ...]:
    """Return `collapseTime=N` (time and status together) and each `collapse=field[:N]`."""
    found = []
    if digits := _number(given, "collapseTime"):
        found.append(Collapse((("timestamp", digits), ("status", None))))
    for one in written:
        name, colon, length = one.partition(":")
        if not name or (colon and not _NUMBER.fullmatch(length)):
            raise UsageError(
                "collapse= is the name of a field, or one with :N for its first N characters."
            )
        found.append(Collapse(((field_name(name), int(length) if colon else None),)))
    return tuple(found)


LONGEST = 1_000
"""Characters of a filter."""

_WRITTEN = re.compile(r"(!?)([=~]?)(?:([A-Za-z0-9_.-]{1,64}):)?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition."""

    inverted: bool
    mark: str
    """`=` for the whole value, `~` for an expression, empty for a part of it."""
    field: str
    """Empty for the whole line."""
    value: str

    def keeps(self, rows: Sequence[IndexRow]) -> list[bool]:
        """Return for each of *rows* whether it passes."""
        if self.field:
            texts = [row.fields.get(self.field, "") for row in rows]
        else:
            texts = [row.line.decode("utf-8", "replace") for row in rows]
        if self.mark == "~":
            found = _matches(texts, self.value)
        elif self.mark == "=":
            found = [text == self.value for text in texts]
        else:
            found = [self.value in text for text in texts]
        return [each != self.inverted for each in found]


def filter_of(written: str) -> Filter:
    """Read a filter; UsageError where it is none."""
    if len(written) > LONGEST:
        raise UsageError(f"A filter has {LONGEST} characters at most.")
    parts = _WRITTEN.fullmatch(written)
    if parts is None or not parts[4]:
        raise UsageError("filter= is [!][=|~]field:value, for instance =status:200 or ~mime:text/.*")
    made = Filter(bool(parts[1]), parts[2], field_name(parts[3] or ""), parts[4])
    try:
        made.keeps([])
        if made.mark == "~":
            _matches([""], made.value)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise UsageError(f"{made.value!a} is not a valid expression: {error}") from error
    return made


def _matches(texts: list[str], expression: str) -> list[bool]:
    found = pc.match_substring_regex(pa.array(texts, pa.string()), f"\\A(?:{expression})")
    return [bool(each) for each in found.to_pylist()]


class MatchType(StrEnum):
    """Which captures a URL stands for."""

    EXACT = "exact"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"


_SCHEMES = ("http://", "https://")


class KeyRange(NamedTuple):
    """Lines from *start* up to, without, *end*."""

    start: bytes
    end: bytes


def wildcard(url: str) -> tuple[str, MatchType]:
    """Return the URL without its asterisk, and the match that it requests.

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
    # Keys have no scheme: a part of one is what all of them begin with.
    if match is MatchType.PREFIX and any(each.startswith(url.lower()) for each in _SCHEMES):
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
