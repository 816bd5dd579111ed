"""A gallery whose media, pages and side requests all go to one host; the delay is an old attribute's."""

import scrapy


class Count:
    """Leaves of an item how many files it has: their URLs differ from run to run."""

    def process_item(self, item):
        return {"files": len(item["files"])} if "files" in item else item


class PacedSpider(scrapy.Spider):
    name = "paced"
    download_delay = 0.3
    custom_settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1, Count: 2},
        "FILES_STORE": "files",
        "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
        "DOWNLOAD_DELAY_JITTER": 0,
    }

    def __init__(self, site, kind, **kwargs):
        super().__init__(**kwargs)
        self.site, self.kind = site, kind

    async def start(self):
        if self.kind == "delay":
            for n in range(4):
                yield scrapy.Request(f"{self.site}/page/{n}")
        else:
            yield scrapy.Request(f"{self.site}/gallery")

    async def parse(self, response):
        if self.kind == "side":
            for n in range(6):
                await self.crawler.engine.download_async(scrapy.Request(f"{self.site}/side/{n}"))
        if self.kind == "media":
            yield {"file_urls": [f"{self.site}/file/{n}" for n in range(20)]}
        else:
            yield {"page": response.url.split("/", 3)[3]}

