"""A project with a resolver of its own, which alone knows the host."""

from scrapy import Request, Spider
from scrapy.resolver import CachingThreadedResolver
from twisted.internet import defer


class Resolver(CachingThreadedResolver):
    def getHostByName(self, name, timeout=()):
        return defer.succeed("127.0.0.7") if name == "shop.example" else defer.fail(OSError("no such name"))


class NamedSpider(Spider):
    name = "named"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.port = site.rpartition(":")[2]

    async def start(self):
        for host in ("shop.example", "missing.example"):
            yield Request(f"http://{host}:{self.port}/page", errback=self.missed)

    def parse(self, response):
        yield {"said": response.text, "address": str(response.ip_address)}

    def missed(self, failure):
        yield {"missed": type(failure.value).__name__}
