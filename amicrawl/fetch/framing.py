"""Where a response ends: the rules of RFC 9112, section 6.3, and what to do where a server breaks them.

A response that can be read in two ways is never guessed at: it is read to the close, or until the server
falls silent, and its connection serves no other request. Pure: no I/O.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.message import REGULAR_HEAD, header_fields, is_chunked, noted_fields, status_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Field = tuple[bytes, bytes]

_VERSION = re.compile(rb"[\r\n]*HTTP/(1\.[01])(?![0-9.])", re.IGNORECASE)
_MOST_DIGITS = 18
_PLAIN_LENGTH = re.compile(rb"[0-9]{1,18}")
_ANY_LENGTH = re.compile(rb"(?<![0-9])[0-9]{1,18}(?![0-9])")

# What a status line without a readable status counts as; so do browsers.
UNREADABLE_STATUS = 200


class Ends(Enum):
    """How the end of a body is found."""

    AT_ONCE = "there is none"
    BY_LENGTH = "after so many bytes"
    BY_CHUNKS = "with the last chunk"
    BY_CLOSE = "with the connection"
    UNSURE = "the head contradicts itself"


class Framing(NamedTuple):
    """How the body of one response is delimited."""

    ends: Ends
    length: int = 0
    """Bytes of the body where `ends` is BY_LENGTH; where it is UNSURE, the most the head speaks of."""
    reusable: bool = False
    """Whether the connection may serve another request once the body has ended."""


class Head(NamedTuple):
    """The final header section of a response, read."""

    status: int
    protocol: str | None
    section: bytes
    """The header section itself."""
    noted: list[Field]
    """Its fields that are `message.NOTED`."""
    framing: Framing

    @property
    def fields(self) -> list[Field]:
        """All of its fields, as `message.header_fields` reads them."""
        return header_fields(self.section)


def read_regular_head(data: bytes, *, method: str, limit: int) -> tuple[int, Head] | None:
    """Return the end of the head that *data* begins with, and the head read.

    None where it is not all there, longer than *limit* bytes, not conforming to RFC 9112, or that of an
    interim response: `read_head` reads those.
    """
    # After any other head the connection is not reused: two parsers might disagree about it, and read
    # the next response from the wrong byte on.
    match = REGULAR_HEAD.match(data)
    if match is None or match.end() > limit:
        return None
    status, end = int(match[2]), match.end()
    if status < 200:
        return None
    return end, _head_of(data[:end], method, status, match[1].decode(), regular=True)


def read_head(head: bytes, *, method: str) -> Head:
    """Read *head*, one header section that answers a request by *method*."""
    status = status_of(head)
    if status is None or status < 100:
        status = UNREADABLE_STATUS
    version = _VERSION.match(head)
    regular = REGULAR_HEAD.fullmatch(head) is not None
    return _head_of(head, method, status, version[1].decode() if version else "", regular=regular)


def _head_of(section: bytes, method: str, status: int, version: str, *, regular: bool) -> Head:
    noted = noted_fields(section, regular=regular)
    framing = _framing(method, status, version, fields=noted, regular=regular)
    return Head(status, f"http/{version}" if version else None, section, noted, framing)


def _framing(
    method: str, status: int, version: str, *, fields: Sequence[Field], regular: bool
) -> Framing:
    lengths: list[bytes] = []
    codings: list[Field] = []
    connection = b""
    for field in fields:
        name = field[0].lower()
        if name == b"content-length":
            lengths += [value.strip() for value in field[1].split(b",")]
        elif name == b"transfer-encoding":
            codings.append(field)
        elif name == b"connection":
            connection += b"," + field[1].lower()
    reusable = regular and _persists(version, connection)
    if method == "HEAD" or status == 304:
        return Framing(Ends.AT_ONCE, reusable=reusable)
    if status == 204:
        # Unlike a 304 it may not speak of a body (RFC 9110, section 8.6); where it does, one may follow.
        return Framing(Ends.AT_ONCE, reusable=reusable and not codings and {*lengths} <= {b"0"})
    if codings and is_chunked(codings):
        # With a length as well, or from HTTP/1.0: read it as chunked, trust the connection no further.
        return Framing(Ends.BY_CHUNKS, reusable=reusable and not lengths and version == "1.1")
    if codings or not lengths or status == 101:
        return Framing(Ends.BY_CLOSE)
    return _framing_by_length(lengths, reusable=reusable)


def _framing_by_length(lengths: Sequence[bytes], *, reusable: bool) -> Framing:
    """Follow a Content-Length whose one value, or several that are equal, is a number."""
    if len(lengths) == 1 and lengths[0].isdigit() and len(lengths[0]) <= _MOST_DIGITS:
        return Framing(Ends.BY_LENGTH, int(lengths[0]), reusable)
    if len(set(lengths)) == 1 and _PLAIN_LENGTH.fullmatch(lengths[0]):
        return Framing(Ends.BY_LENGTH, int(lengths[0]), reusable=reusable and len(lengths) == 1)
    spoken_of = [int(number) for number in _ANY_LENGTH.findall(b" ".join(lengths))]
    return Framing(Ends.UNSURE, max(spoken_of, default=0))


def _persists(version: str, connection: bytes) -> bool:
    """Return whether the server keeps the connection open (RFC 9112, section 9.3)."""
    options = {option.strip() for option in connection.split(b",")} if connection else ()
    if b"close" in options:
        return False
    return version == "1.1" or (version == "1.0" and b"keep-alive" in options)
