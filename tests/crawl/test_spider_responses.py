"""What of a response's header section reaches a callback."""

from __future__ import annotations

import pytest
from scrapy.http import Headers

from amicrawl.crawl.responses import headers_of


@pytest.mark.parametrize(
    "name", [b"Connection", b"Keep-Alive", b"Proxy-Connection", b"TE", b"transfer-encoding", b"Upgrade"]
)
def test_a_spider_sees_no_field_that_is_for_the_connection_alone(name: bytes) -> None:
    fields = [(b"Set-Cookie", b"a=1"), (name, b"x"), (b"set-cookie", b"b=2"), (b"Trailer", b"X-T")]
    assert headers_of(fields) == Headers({"Set-Cookie": ["a=1", "b=2"], "Trailer": "X-T"})
