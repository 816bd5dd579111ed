"""Walks a tree of pages, a request at a time; one page may be the last that its process reads.

At another the disk may be full, as far as the journal of what waits is concerned.
"""

import asyncio
import os
import resource
import signal

from scrapy import Request, Spider


class WalkingSpider(Spider):
    name = "walking"
    custom_settings = {"JOBDIR": "job", "CONCURRENT_REQUESTS": 1}

    def __init__(self, site, dies_in="", fills_in="", **kwargs):
        super().__init__(**kwargs)
        self.site, self.dies_in, self.fills_in = site, dies_in, fills_in

    async def start(self):
        yield Request(f"{self.site}/0")

    async def parse(self, response):
        if response.url.endswith(f"/{self.dies_in}"):
            # What was done before is in the journal by then.
            await asyncio.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fills_in:
            await asyncio.sleep(0.2)
        if response.url.endswith(f"/{self.fills_in}"):
            most = os.path.getsize("job/requests.sqlite-wal")
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        yield {"page": response.url.rpartition("/")[2], "depth": response.meta["depth"]}
        for request in response.follow_all(css="a"):
            yield request
