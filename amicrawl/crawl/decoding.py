"""Content decoding for callbacks that survives what servers send.

Scrapy's middleware raises on a body that is not what its Content-Encoding says, and the response is
lost to the spider. It has been archived by then; the callback gets the bytes as they came.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import brotli
import zstandard
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

_UNDECODABLE = (OSError, EOFError, zlib.error, brotli.error, zstandard.ZstdError, ValueError)


class TolerantDecodingMiddleware(HttpCompressionMiddleware):
    """Decodes as Scrapy does, and hands on undecoded what cannot be decoded, flagged `undecodable`."""

    def process_response(  # type: ignore[override]  # the parent's deprecated spider argument is gone
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return *response* decoded, or as it is with the flag."""
        try:
            return super().process_response(request, response)
        except _UNDECODABLE:
            if self.stats:
                self.stats.inc_value("amicrawl/decoding/undecodable")
            return response.replace(flags=[*response.flags, "undecodable"])
