"""A download handler of somebody else's, such as a browser's: it delivers parsed responses."""

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.http import HtmlResponse
from scrapy.utils.misc import build_from_crawler, load_object


class BrowserHandler(BaseDownloadHandler):
    """Renders every page to the same text."""

    lazy = False

    async def download_request(self, request):
        return HtmlResponse(
            request.url,
            status=203,
            headers={"Content-Type": "text/html", "X-Rendered": ["one", "two"]},
            body=b"<html><title>rendered</title></html>",
            request=request,
        )


class HandingOnHandler(BrowserHandler):
    """Has the handler of amicrawl fetch each page first, and renders those that are forbidden."""

    def __init__(self, crawler):
        super().__init__(crawler)
        ours = load_object("amicrawl.crawl.handler.WireHandler")
        self.ours = build_from_crawler(ours, crawler)

    async def download_request(self, request):
        response = await self.ours.download_request(request)
        return await super().download_request(request) if response.status == 403 else response
