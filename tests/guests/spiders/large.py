"""Stores one large file."""

import scrapy


class Count:
    """Leaves of an item what is the same in every run."""

    def process_item(self, item):
        return {"status": [file["status"] for file in item["files"]]}


class LargeSpider(scrapy.Spider):
    name = "large"
    custom_settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1, Count: 2},
        "FILES_STORE": "files",
    }

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site = site

    async def start(self):
        yield {"file_urls": [f"{self.site}/large"]}
