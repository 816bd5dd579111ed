"""A download handler of somebody else's, such as a browser's: it delivers parsed responses."""

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.http import HtmlResponse


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
