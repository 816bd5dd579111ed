"""Downloads that are cut, too large, too slow or stopped; what the spider is told of each."""

from scrapy import Request, Spider, signals
from scrapy.exceptions import StopDownload

KINDS = ["cut", "cut-allowed", "large", "large-announced", "slow", "chunked-cut", "whole"]
ODD = ["surplus", "surplus-of-none", "to-the-close", "endless", "endless-chunks"]


class CutSpider(Spider):
    name = "cut"
    custom_settings = {"RETRY_TIMES": 1, "DOWNLOAD_MAXSIZE": 30000, "DOWNLOAD_WARNSIZE": 25000}

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site = site

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.headers_received, signals.headers_received)
        crawler.signals.connect(spider.bytes_received, signals.bytes_received)
        return spider

    async def start(self):
        meta = {"cut-allowed": {"download_fail_on_dataloss": False}, "slow": {"download_timeout": 1}}
        for kind in KINDS + ODD:
            yield Request(f"{self.site}/{kind}", errback=self.missed, meta=meta.get(kind))
        for kind in ("stop-at-head", "stop-in-body"):
            yield Request(f"{self.site}/{kind}", errback=self.missed)

    def headers_received(self, headers, body_length, request, spider):
        if request.url.endswith("stop-at-head"):
            raise StopDownload(fail=False)

    def bytes_received(self, data, request, spider):
        if request.url.endswith("stop-in-body"):
            raise StopDownload(fail=True)

    def parse(self, response):
        length = len(response.body) if "download_stopped" not in response.flags else 0
        yield {"kind": response.url.rpartition("/")[2], "length": length, "flags": response.flags,
               "protocol": response.protocol, "ip": str(response.ip_address) if length else ""}

    def missed(self, failure):
        tried = failure.request.meta.get("retry_times", 0)
        yield {"kind": failure.request.url.rpartition("/")[2], "why": type(failure.value).__name__, "tried": tried}
