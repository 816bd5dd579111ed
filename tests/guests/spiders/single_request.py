"""Requests one page, as its arguments say: through a proxy, from an address, in a browser."""

import json

from scrapy import Request, Spider


class SingleRequestSpider(Spider):
    name = "single_request"

    def __init__(self, site, url="", meta="{}", **kwargs):
        super().__init__(**kwargs)
        self.url, self.meta = url or f"{site}/", json.loads(meta)

    async def start(self):
        yield Request(self.url, meta=self.meta, errback=self.missed, cb_kwargs={"first": True})

    def parse(self, response, first=False):
        yield {
            "page": "/" + response.url.split("/", 3)[3],
            "said": response.text,
            "status": response.status,
            "protocol": response.protocol,
            "certificate": response.certificate is not None,
            "flags": response.flags,
        }
        for link in response.css("a::attr(href)").getall() if first else ():
            yield response.follow(link, meta={k: self.meta[k] for k in self.meta if k == "playwright"})

    def missed(self, failure):
        yield {"missed": type(failure.value).__name__}
