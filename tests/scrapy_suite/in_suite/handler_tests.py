"""Scrapy's tests of a download handler, on ours. Copied into Scrapy's `tests` for a run of the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.utils.bases.download_handlers_http import (
    TestHttpBase,
    TestHttpProxyBase,
    TestHttpsBase,
    TestHttpsCustomCiphersBase,
    TestHttpsDefaultCiphersBase,
    TestHttpsInvalidDNSIdBase,
    TestHttpsInvalidDNSPatternBase,
    TestHttpsTLSVersionBase,
    TestHttpsWrongHostnameBase,
    TestHttpWithCrawlerBase,
    TestMitmProxyBase,
    TestSimpleHttpsBase,
)

from amicrawl.crawl.guest.handler import GuestHandler

if TYPE_CHECKING:
    from scrapy.core.downloader.handlers import DownloadHandlerProtocol

pytestmark = pytest.mark.only_asyncio

HANDLER = "amicrawl.crawl.guest.handler.GuestHandler"


class GuestHandlerMixin:
    @property
    def download_handler_cls(self) -> type[DownloadHandlerProtocol]:
        return GuestHandler

    @property
    def settings_dict(self) -> dict[str, Any] | None:
        return {"DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER}}


class TestHttp(GuestHandlerMixin, TestHttpBase):
    pass


class TestHttps(GuestHandlerMixin, TestHttpsBase):
    tls_log_message = "SSL connection to 127.0.0.1 using protocol TLSv1.3, cipher"

    @pytest.mark.skip(reason="The check is Twisted-specific")
    def test_verify_certs_deprecated(self) -> None:  # type: ignore[override]
        pass


class TestSimpleHttps(GuestHandlerMixin, TestSimpleHttpsBase):
    pass


class TestHttpsWrongHostname(GuestHandlerMixin, TestHttpsWrongHostnameBase):
    pass


class TestHttpsInvalidDNSId(GuestHandlerMixin, TestHttpsInvalidDNSIdBase):
    pass


class TestHttpsInvalidDNSPattern(GuestHandlerMixin, TestHttpsInvalidDNSPatternBase):
    pass


class TestHttpsCustomCiphers(GuestHandlerMixin, TestHttpsCustomCiphersBase):
    pass


class TestHttpsDefaultCiphers(GuestHandlerMixin, TestHttpsDefaultCiphersBase):
    pass


class TestHttpsTLSVersion(GuestHandlerMixin, TestHttpsTLSVersionBase):
    pass


class TestHttpWithCrawler(GuestHandlerMixin, TestHttpWithCrawlerBase):
    pass


class TestHttpsWithCrawler(TestHttpWithCrawler):
    is_secure = True


class TestHttpProxy(GuestHandlerMixin, TestHttpProxyBase):
    # As the handler of httpx: an empty path is sent as "/" (RFC 9112, 3.2.1).
    expected_http_proxy_request_body = b"http://example.com/"


class TestHttpsProxy(TestHttpProxy):
    is_secure = True


@pytest.mark.requires_mitmproxy
class TestMitmProxy(GuestHandlerMixin, TestMitmProxyBase):
    handler_supports_socks = True
