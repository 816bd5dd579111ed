"""Walks a tree of pages, a request at a time; one page may be the last that its process reads."""

import asyncio
import os
import signal

from scrapy import Request, Spider


class WalkingSpider(Spider):
    name = "walking"
    custom_settings = {"JOBDIR": "job", "CONCURRENT_REQUESTS": 1}

    def __init__(self, site, dies_in="", **kwargs):
        super().__init__(**kwargs)
        self.site, self.dies_in = site, dies_in

    async def start(self):
        yield Request(f"{self.site}/0")

    async def parse(self, response):
        if response.url.endswith(f"/{self.dies_in}"):
            # What was done before is in the journal by then.
            await asyncio.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        yield {"page": response.url.rpartition("/")[2], "depth": response.meta["depth"]}
        for request in response.follow_all(css="a"):
            yield request
