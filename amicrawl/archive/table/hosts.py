"""The columns that a table has about a host: its name, its labels, its suffixes, its name reversed.

An address has a name and nothing else. Names are lower case and in ASCII form (IDNA 2003, as the tables
that exist have them, so that emoji and unassigned characters work); a name that cannot be written so is
no host. Percent-escapes are decoded once. What a name may not contain by the rules of DNS is left alone.

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
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from publicsuffixlist import PSLFILE, PublicSuffixList

from amicrawl.urls import covered_by_rules, exceptions

if TYPE_CHECKING:
    from collections.abc import Sequence


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
