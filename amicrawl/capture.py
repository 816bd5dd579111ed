"""Capture: one exchange with a server, byte for byte.

`fetch` makes captures and `record` keeps them; nothing between the two may change a byte. A capture
knows what went over the wire and when. It does not know why it was requested (the seed says that) nor
where it is kept (that is the record's).
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from amicrawl.clock import from_unix_ms
from amicrawl.errors import OutputError
from amicrawl.message import header_fields, is_chunked, noted_fields, unchunk
from amicrawl.urls import resolve, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from io import FileIO
    from pathlib import Path

_READ = 256 * 1024


class Truncation(StrEnum):
    """Why a stored message is shorter than what the server had: the words of `WARC-Truncated`."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"
    UNSPECIFIED = "unspecified"


class Failure(StrEnum):
    """Why a fetch brought no response at all: the first word of the index's `error` column."""

    NAME_NOT_FOUND = "name-not-found"
    NAME_LOOKUP_FAILED = "name-lookup-failed"
    ADDRESS_REFUSED = "address-refused"
    NO_ROUTE = "no-route"
    CONNECTION_REFUSED = "connection-refused"
    CONNECT_TIMEOUT = "connect-timeout"
    CONNECTION_RESET = "connection-reset"
    TLS_HANDSHAKE = "tls-handshake"
    TLS_CERTIFICATE = "tls-certificate"
    PROXY = "proxy"
    RESPONSE_TIMEOUT = "response-timeout"
    EMPTY_RESPONSE = "empty-response"
    UNFETCHABLE_URL = "unfetchable-url"
    HOST_SKIPPED = "host-skipped"
    ROBOTS_DENIED = "robots-denied"
    REFUSED_BY_CRAWL = "refused-by-crawl"
    REPEATED_SEED = "repeated-seed"
    ENDED_HERE = "ended-here"
    OTHER = "other"

    @property
    def never_requested(self) -> bool:
        """Whether no server was contacted: the URL is none, or a rule of the crawl left it out."""
        return self in _NEVER_REQUESTED


_NEVER_REQUESTED = frozenset(
    {
        Failure.UNFETCHABLE_URL,
        Failure.HOST_SKIPPED,
        Failure.ROBOTS_DENIED,
        Failure.REFUSED_BY_CRAWL,
        Failure.REPEATED_SEED,
    }
)


class Body(Protocol):
    """A message body as received, transfer coding and all; it may lie in memory or on disk."""

    def __len__(self) -> int:
        """Return its size in bytes."""

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes in order; may be called again, and from another thread."""

    def close(self) -> None:
        """Give back what it holds; it cannot be read afterwards."""


@dataclass(frozen=True, slots=True)
class BytesBody:
    """A body that lies in memory."""

    content: bytes = b""

    def __len__(self) -> int:
        return len(self.content)

    def blocks(self) -> Iterator[bytes]:
        """Return the one block there is, if any."""
        return iter((self.content,) if self.content else ())

    def close(self) -> None:
        """Nothing to give back."""


NO_BODY = BytesBody()


class Spool:
    """A body that is too large for memory: a temporary file, which grows by `write`.

    It is unlinked from the start, so that a crash leaves nothing behind; `close` gives it back. Reads
    are positional, so readers and the writer do not affect each other.
    """

    __slots__ = ("_directory", "_file", "_length")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: FileIO | None = None
        self._length = 0

    def __len__(self) -> int:
        """Return the number of bytes written so far."""
        return self._length

    def write(self, block: bytes) -> None:
        """Append *block*. Raises OutputError where the temporary file cannot be made or written."""
        try:
            if self._file is None:
                # A named file would outlive a crash; this one has no name from the start.
                self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115
            rest = memoryview(block)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise OutputError(
                f"Cannot write a temporary file in {self._directory}: {error.strerror}. "
                "Make room there, then run the same command again: a crawl resumes."
            ) from error
        self._length += len(block)

    def blocks(self) -> Iterator[bytes]:
        """Yield what has been written, in order; may be called again, and from another thread."""
        offset = 0
        while offset < self._length:
            if self._file is None or self._file.closed:
                raise ValueError("This body was closed and cannot be read any more.")
            block = os.pread(self._file.fileno(), min(_READ, self._length - offset), offset)
            if not block:
                raise OutputError(
                    f"A temporary file in {self._directory} was cut short at byte {offset}."
                )
            yield block
            offset += len(block)

    def close(self) -> None:
        """Give back the file; a second call does nothing."""
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True, slots=True)
class Tls:
    """What is known of the secured connection."""

    version: str
    """As `WARC-Protocol` names it: `tls/1.2`, `tls/1.3`."""
    cipher: str
    """The IANA or OpenSSL name of the suite; empty where the library does not tell."""
    verified: bool
    """Whether the certificate was trusted for the host that was contacted."""
    fault: str = ""
    """Why it was not trusted, in OpenSSL's words; empty where it was."""
    certificate: bytes = b""
    """The server's certificate (X.509, DER)."""


@dataclass(kw_only=True)
class Capture:
    """One request as sent and its response as received.

    A fetch that failed before a response has `status` 0, a `failure` and an empty `head`; `request`
    then holds whatever had been sent, often nothing.
    """

    url: str
    """The URL that was fetched, as it was found; only what cannot stand in a request is encoded, and a
    user name and password are left out."""
    started_ms: int
    """When the request began, in Unix milliseconds."""
    duration_ms: int
    """From there to the last byte (or the failure)."""
    ttfb_ms: int | None = None
    """From there to the first byte of the response; None where none came."""
    request: bytes = b""
    """Request head and body, exactly as sent."""
    head: bytes = b""
    """From the first byte received to the end of the blank line after the final header section.

    Interim (1xx) responses that came first are part of it. Empty for an HTTP/0.9 response.
    """
    body: Body = NO_BODY
    """Everything received after `head`, transfer coding, trailers and surplus bytes included."""
    status: int = 0
    """The final status code; 0 where no response came. An HTTP/0.9 response counts as 200."""
    ip_address: str | None = None
    """The address that was dialled (the server's, or the proxy's where one was used)."""
    protocol: str | None = None
    """As `WARC-Protocol` names it: `http/0.9`, `http/1.0`, `http/1.1`, `h2`; None where unknown."""
    tls: Tls | None = None
    truncated: Truncation | None = None
    failure: Failure | None = None
    failure_detail: str = ""
    """What the library or the rule said, one line; untrusted text."""
    payload_digest: tuple[str, int] | None = None
    """SHA-1 (lower-case hex) and length of the payload, where chunked coding was removed on receipt."""
    reconstructed_by: str | None = None
    """Dotted name of the foreign download handler whose parsed response this was rebuilt from."""

    def __post_init__(self) -> None:
        """Leave out what the record and the row must not have."""
        if "@" in self.url:
            self.url = without_userinfo(self.url)

    @property
    def started(self) -> datetime:
        """When the request began; aware, UTC, whole milliseconds."""
        return from_unix_ms(self.started_ms)

    @cached_property
    def received(self) -> int:
        """Bytes of head and body as received; to be requested once both are there."""
        return len(self.head) + len(self.body)

    @cached_property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """Header fields of the final response, in order, names as sent, values without outer space."""
        return header_fields(self.head)

    @cached_property
    def noted(self) -> list[tuple[bytes, bytes]]:
        """Those of `fields` that each page is checked for, `message.NOTED`."""
        return noted_fields(self.head)

    @cached_property
    def content_type(self) -> str:
        """The first Content-Type of the final response as text; empty where there is none."""
        for name, value in self.noted:
            if name.lower() == b"content-type":
                return value.decode("utf-8", "surrogateescape")
        return ""

    @cached_property
    def is_chunked(self) -> bool:
        """Whether the body has the chunked transfer coding."""
        return is_chunked(self.noted)

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of the response header *name* (any case), or None."""
        wanted = name.lower()
        return next((value for key, value in self.fields if key.lower() == wanted), None)

    def payload(self) -> Iterator[bytes]:
        """Yield the payload: the body with chunked transfer coding removed, content coding kept.

        Where the coding is broken, what could be decoded comes first and the rest as it stands.
        """
        blocks = self.body.blocks()
        return unchunk(blocks) if self.is_chunked else blocks


REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Statuses of a response that leads elsewhere."""


def final_url(capture: Capture) -> str:
    """Return where the exchange led: the target of a redirect, else the URL itself; empty for none."""
    if capture.failure is not None:
        return ""
    location = capture.header(b"location") if capture.status in REDIRECTS else None
    return resolve(capture.url, location) if location else capture.url
