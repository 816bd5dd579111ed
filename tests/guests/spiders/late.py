"""A pipeline that requests a page when the spider is being closed, and a handler that is not ours."""

from scrapy import Request, Spider
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler


class LateHandler(HTTP11DownloadHandler):
    pass


class LatePipeline:
    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def process_item(self, item):
        return item

    async def close_spider(self):
        try:
            await self.crawler.engine.download_async(Request(self.crawler.settings["LATE"]))
        except Exception as error:
            self.crawler.spider.logger.info("late: %r", error)


class LateSpider(Spider):
    name = "late"
    custom_settings = {"ITEM_PIPELINES": {LatePipeline: 300}}

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site, self.start_urls = site, [f"{site}/in-time"]

    def parse(self, response):
        yield {"page": response.url[len(self.site) :]}
