"""Requests many pages, or many files, at once."""

import scrapy


class Count:
    """Leaves of an item how many files it has: their URLs differ from run to run."""

    def process_item(self, item):
        return {"files": len(item["files"])} if "files" in item else item


class WideSpider(scrapy.Spider):
    name = "wide"
    custom_settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1, Count: 2},
        "FILES_STORE": "files",
    }

    def __init__(self, site, kind, **kwargs):
        super().__init__(**kwargs)
        self.site, self.kind = site, kind

    async def start(self):
        for path in ["alone"] if self.kind == "files" else [f"page/{n}" for n in range(12)]:
            yield scrapy.Request(f"{self.site}/{path}")

    def parse(self, response):
        yield {"page": response.url.split("/", 3)[3]}
        if self.kind == "files":
            yield {"file_urls": [f"{self.site}/file/{n}" for n in range(12)]}
