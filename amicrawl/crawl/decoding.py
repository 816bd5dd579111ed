"""Content decoding for callbacks that survives what servers send.

Scrapy's middleware raises on a body that is not what its Content-Encoding says, unpacks a bomb to a
gibibyte, and the response is lost to the spider. It has been archived by then; the callback gets the
bytes as they came. What a body may unpack to is bounded by its own size, since nothing else
gives a bomb away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

_MOST_CODINGS = 2
"""Codings one inside the other; no server sends more in good faith."""
_ALWAYS_ALLOWED = 32 << 20
"""Bytes that any body may unpack to: a page of nothing but table cells packs a thousandfold."""
_RATIO = 100
"""Times its own size that a larger one may unpack to."""
_MOST = 256 << 20
"""Bytes that nothing may exceed."""


class TolerantDecodingMiddleware(HttpCompressionMiddleware):
    """Decodes as Scrapy does, and hands on undecoded what cannot be decoded, flagged `undecodable`."""

    def process_response(  # type: ignore[override]  # the parent's deprecated spider argument is gone
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return *response* decoded, or as it is with the flag."""
        try:
            return super().process_response(request, response)
        except (_UndecodableError, UnicodeDecodeError):  # the latter of a coding whose name is not text
            if self.stats:
                self.stats.inc_value("amicrawl/decoding/undecodable")
            return response.replace(flags=[*response.flags, "undecodable"])

    def _handle_encoding(
        self, body: bytes, content_encoding: list[bytes], max_size: int
    ) -> tuple[bytes, list[bytes]]:
        """Decode *body* within its bounds. Private in Scrapy, which has no other place for them."""
        if len(b",".join(content_encoding).split(b",")) > _MOST_CODINGS:
            raise _UndecodableError
        allowed = min(max(_ALWAYS_ALLOWED, _RATIO * len(body)), max_size or _MOST, _MOST)
        try:
            return super()._handle_encoding(body, content_encoding, allowed)
        except Exception as error:  # each coding's library has errors of its own
            raise _UndecodableError from error


class _UndecodableError(Exception):
    """The body is not what its Content-Encoding says, or too much of it."""
