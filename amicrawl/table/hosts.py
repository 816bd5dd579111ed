"""The columns that a table has about a host: its name, its labels, its suffixes, its name reversed.

An address has a name and nothing else. Names are lower case and in ASCII form (IDNA 2003, as the tables
that exist have them, so that emoji and unassigned characters work); a name that cannot be written so is
no host. Percent-escapes are decoded once. What a name may not contain by the rules of DNS is left alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from amicrawl.table.suffixes import suffixes_of

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


class Authority(NamedTuple):
    """What stands between `//` and the path, user information left out."""

    host: HostColumns
    port: int | None
    """As written, also where it is the default; None where there is none or no number."""


@lru_cache(maxsize=_REMEMBERED)
def authority_columns(text: str) -> Authority:
    """Return the columns for *text*, the authority of a URL as written."""
    named = text.rpartition("@")[2]
    if named.startswith("["):
        literal, bracket, rest = named.partition("]")
        host, port = literal + bracket, rest.removeprefix(":")
    else:
        host, _, port = named.partition(":")
    number = int(port) if _PORT.fullmatch(port) else None
    return Authority(host_columns(host), number if number is None or number <= _LARGEST_PORT else None)


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
