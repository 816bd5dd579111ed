"""The messages of an archive: a request as it was sent, a response as it was received, and its content.

All that comes from servers is untrusted; what is kept of a body in memory has a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from amicrawl.discovery import charset_of, decoded
from amicrawl.errors import InputError
from amicrawl.message import codings_of, final_head, header_fields, status_of
from amicrawl.record import request_before

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amicrawl.record import CaptureItem

BODY_LIMIT = 64 << 20
"""Bytes of a body, and of a decoded one, that are kept in memory; a longer one is read in blocks."""


class Headers(Mapping[str, str]):
    """Header fields in their order; names are found in any case, and of repeated ones the first."""

    def __init__(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        self.fields: list[tuple[str, str]] = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in fields
        ]
        """Names as sent and values, repeated ones included; bytes as Latin-1."""
        self._first = {name.lower(): value for name, value in reversed(self.fields)}

    def __getitem__(self, name: str) -> str:
        return self._first[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def all(self, name: str) -> list[str]:
        """Return all values of the field *name*, in their order."""
        return [value for known, value in self.fields if known.lower() == name.lower()]

    def __repr__(self) -> str:
        return f"Headers({self.fields!r})"


@dataclass(frozen=True)
class Request:
    """A request as it was sent."""

    raw: bytes
    """Head and body, byte for byte."""

    @property
    def method(self) -> str:
        """The method, as `GET`."""
        return self._first_line[0]

    @property
    def target(self) -> str:
        """The target of the request line."""
        return self._first_line[1]

    @cached_property
    def headers(self) -> Headers:
        """The header fields."""
        return Headers(header_fields(self._head))

    @property
    def body(self) -> bytes:
        """Everything behind the head."""
        return self.raw[len(self._head) :]

    @property
    def _head(self) -> bytes:
        head, blank, _ = self.raw.partition(b"\r\n\r\n")
        return head + blank

    @property
    def _first_line(self) -> tuple[str, str]:
        words = self.raw.partition(b"\r\n")[0].decode("latin-1").split(" ")
        return words[0], words[1] if len(words) > 1 else ""


class Response:
    """A response as it was received. Of a revisit, the payload is that of the capture it refers to."""

    def __init__(self, item: CaptureItem, path: Path, payload_of: Response | None = None) -> None:
        self._capture = item.capture
        self._path = path
        self._item = item
        self._payload_of = payload_of
        self.status: int = item.capture.status
        """The status code; 200 for an HTTP/0.9 response."""

    @cached_property
    def headers(self) -> Headers:
        """The header fields of the final response."""
        return Headers(self._capture.fields)

    @property
    def reason(self) -> str:
        """The reason phrase of the status line; empty where there is none."""
        line = final_head(self._capture.head).partition(b"\n")[0].strip()
        words = line.decode("latin-1").split(" ", 2)
        return words[2] if len(words) > 2 and status_of(line + b"\r\n") is not None else ""

    @cached_property
    def raw(self) -> bytes:
        """The bytes as received: interim responses, head and body with its transfer coding.

        Raises InputError where the body is longer than 64 MiB; `blocks` reads it whole.
        """
        return self._capture.head + _limited(self._capture.body.blocks(), self._capture.url)

    def blocks(self) -> Iterator[bytes]:
        """Yield the payload, without transfer coding and with content coding, of any length."""
        source = self if self._payload_of is None else self._payload_of
        yield from source._capture.payload()  # noqa: SLF001  # of its own class

    @cached_property
    def content(self) -> bytes:
        """The payload without transfer coding and content coding; a broken coding ends it early.

        Raises InputError where it is longer than 64 MiB.
        """
        source = self._payload_of or self
        codings = codings_of(source._capture.fields)  # noqa: SLF001  # of its own class
        if not codings:
            return _limited(self.blocks(), self._capture.url)
        content = decoded(self.blocks(), codings, limit=BODY_LIMIT + 1)
        return _limited(iter([content]), self._capture.url)

    @property
    def text(self) -> str:
        """The content decoded by its byte order mark, Content-Type or own declaration, else as UTF-8.

        What does not decode becomes U+FFFD. Raises as `content`.
        """
        source = self._payload_of or self
        charset = charset_of(self.content, source.headers.get("content-type", ""))
        return self.content.decode(charset, "replace").removeprefix("\ufeff")

    @cached_property
    def request(self) -> Request | None:
        """The request that was sent for it; None where the archive has none."""
        assert self._item.location is not None
        raw = request_before(self._path, self._item.location.offset)
        return None if raw is None else Request(raw)

    def __repr__(self) -> str:
        return f"<Response {self.status} {self._capture.url}>"


def _limited(blocks: Iterator[bytes], url: str) -> bytes:
    """Return *blocks* as one; InputError where they are more than `BODY_LIMIT` bytes."""
    whole = bytearray()
    for block in blocks:
        whole += block
        if len(whole) > BODY_LIMIT:
            raise InputError(
                f"The body of {url!a} has more than {BODY_LIMIT >> 20} MiB. Read it with blocks()."
            )
    return bytes(whole)
