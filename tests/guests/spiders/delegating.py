"""An add-on whose download handler renders some pages, and hands the others to the handler before it.

What that gets a 403 for is rendered after all.
"""

from scrapy.http import HtmlResponse
from scrapy.utils.misc import build_from_crawler, load_object


class DelegatingAddon:
    def update_settings(self, settings):
        settings.set("FALLBACK_HANDLER", settings.getwithbase("DOWNLOAD_HANDLERS")["http"], "addon")
        settings["DOWNLOAD_HANDLERS"]["http"] = "delegating.DelegatingHandler"


class DelegatingHandler:
    lazy = False

    def __init__(self, crawler):
        self.fallback = build_from_crawler(load_object(crawler.settings["FALLBACK_HANDLER"]), crawler)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def download_request(self, request):
        if "rendered" in request.meta:
            return HtmlResponse(request.url, body=b"rendered")
        response = await self.fallback.download_request(request)
        if response.status == 403:
            if "breaks" in request.meta:
                raise OSError("no browser")
            return HtmlResponse(request.url, body=b"rendered")
        return response

    async def close(self):
        await self.fallback.close()
