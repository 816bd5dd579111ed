"""Spiders of every kind that Scrapy's documentation has, all in one process; run as a script: SITE.

Each crawls a host of its own, and archives into a directory of its own.
"""

import os
import sys

import scrapy
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.dupefilters import RFPDupeFilter
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, CSVFeedSpider, Rule, SitemapSpider, XMLFeedSpider

PORT = sys.argv[1].rpartition(":")[2] if len(sys.argv) > 1 else ""


def site(number):
    return f"http://127.0.0.{number}:{PORT}"


def path_of(response):
    return response.url.split("/", 3)[3]


class Quotes(scrapy.Spider):
    """The tutorial's."""

    name = "quotes"
    start_urls = [f"{site(11)}/quotes/1"]

    def parse(self, response):
        for quote in response.css("div.quote"):
            yield {"text": quote.css("span::text").get(), "page": path_of(response)}
        yield from response.follow_all(css="a.next", callback=self.parse)
        yield from response.follow_all(css="a.author", callback=self.parse_author)

    def parse_author(self, response):
        yield {"author": response.css("h3::text").get()}


class Rules(CrawlSpider):
    """With rules, and a callback that is called `parse`."""

    name = "rules"
    start_urls = [f"{site(12)}/tree/0"]
    rules = (Rule(LinkExtractor(allow="/tree/"), callback="parse", follow=True),)

    def parse(self, response):
        yield {"page": path_of(response), "depth": response.meta["depth"]}
        if path_of(response) == "tree/2":
            yield scrapy.Request(f"{site(12)}/extra", callback=self.parse)


class Sitemap(SitemapSpider):
    name = "sitemap"
    sitemap_urls = [f"{site(13)}/robots.txt"]

    def parse(self, response):
        yield {"page": path_of(response)}


class Xml(XMLFeedSpider):
    name = "xml"
    start_urls = [f"{site(14)}/feed.xml"]
    itertag = "entry"

    def parse_node(self, response, node):
        yield {"title": node.xpath("title/text()").get()}


class Csv(CSVFeedSpider):
    name = "csv"
    start_urls = [f"{site(15)}/feed.csv"]
    delimiter = ";"

    def parse_row(self, response, row):
        yield dict(row)


class Login(scrapy.Spider):
    """By form and cookie."""

    name = "login"
    start_urls = [f"{site(16)}/login"]

    def parse(self, response):
        return scrapy.FormRequest.from_response(response, formdata={"user": "u"}, callback=self.after)

    def after(self, response):
        yield {"page": path_of(response), "said": response.css("p::text").get()}
        yield response.follow("/private", callback=self.private)

    def private(self, response):
        yield {"said": response.css("p::text").get()}


class Files(scrapy.Spider):
    name = "files"
    start_urls = [f"{site(17)}/gallery"]
    custom_settings = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": "files"}

    def parse(self, response):
        for n in range(8):
            yield {"file_urls": [f"{site(17)}/file/{n}", f"{site(17)}/missing/{n}"]}


class Images(scrapy.Spider):
    name = "images"
    start_urls = [f"{site(18)}/gallery"]
    custom_settings = {"ITEM_PIPELINES": {"scrapy.pipelines.images.ImagesPipeline": 1}, "IMAGES_STORE": "images"}

    def parse(self, response):
        yield {"image_urls": [f"{site(18)}/image/{n}.png" for n in range(3)]}


class Cached(scrapy.Spider):
    """Requests the same page twice, and has the second from the cache."""

    name = "cached"
    start_urls = [f"{site(19)}/page"]
    custom_settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": "cache"}

    def parse(self, response):
        yield {"flags": response.flags}
        if "cached" not in response.flags:
            yield response.request.replace(dont_filter=True)


class Throttled(scrapy.Spider):
    name = "throttled"
    custom_settings = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1, "AUTOTHROTTLE_DEBUG": True}

    async def start(self):
        for n in range(4):
            yield scrapy.Request(f"{site(20)}/page/{n}")

    def parse(self, response):
        yield {"page": path_of(response), "slot": response.meta["download_slot"]}


class LastDigits(RFPDupeFilter):
    """Filters what ends in the same digit."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = set()

    def request_seen(self, request):
        known = request.url[-1] in self.seen
        self.seen.add(request.url[-1])
        return known


class Filtered(scrapy.Spider):
    name = "filtered"
    custom_settings = {"DUPEFILTER_CLASS": LastDigits}

    async def start(self):
        for n in (1, 2, 11, 3):
            yield scrapy.Request(f"{site(21)}/page/{n}")

    def parse(self, response):
        yield {"page": path_of(response)}


class Fingerprints:
    """Takes the header into what makes two requests the same."""

    def fingerprint(self, request):
        return request.url.encode() + request.headers.get("X-Which", b"")


class Same(scrapy.Spider):
    """URLs and requests that only their project knows apart."""

    name = "same"
    custom_settings = {"REQUEST_FINGERPRINTER_CLASS": Fingerprints}

    async def start(self):
        for which in "abcde":
            yield scrapy.Request(f"{site(22)}/page", headers={"X-Which": which})
        for campaign in "xy":
            yield scrapy.Request(f"{site(22)}/page?utm_source={campaign}")

    def parse(self, response):
        yield {"page": path_of(response), "which": response.request.headers.get("X-Which", b"").decode()}


class Raw(scrapy.Spider):
    """Without Scrapy's redirects and decompression, as the project says."""

    name = "raw"
    handle_httpstatus_list = [302]
    custom_settings = {
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
            "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
        }
    }

    async def start(self):
        for path in ("moved", "gzip"):
            yield scrapy.Request(f"{site(23)}/{path}#part")

    def parse(self, response):
        yield {
            "page": path_of(response),
            "status": response.status,
            "length": len(response.body),
            "meta": sorted(set(response.meta) - {"download_latency"}),
        }


class Silent(scrapy.Spider):
    """A server that does not respond, and one that fails at first."""

    name = "silent"
    custom_settings = {"RETRY_TIMES": 2}

    async def start(self):
        yield scrapy.Request(f"{site(24)}/silent")
        yield scrapy.Request(f"{site(24)}/unstable", meta={"max_retry_times": 1})

    def parse(self, response):
        yield {"page": path_of(response), "status": response.status, "tried": response.meta.get("retry_times")}


class Obeying(scrapy.Spider):
    name = "obeying"
    custom_settings = {"ROBOTSTXT_OBEY": True}

    async def start(self):
        for path in ("open", "closed"):
            yield scrapy.Request(f"{site(25)}/{path}", errback=self.missed)

    def parse(self, response):
        yield {"page": path_of(response)}

    def missed(self, failure):
        yield {"missed": failure.request.url.split("/", 3)[3], "why": type(failure.value).__name__}


SPIDERS = [
    Quotes, Rules, Sitemap, Xml, Csv, Login, Files, Images, Cached, Throttled, Filtered, Same, Raw, Silent, Obeying,
]


def main():
    process = CrawlerProcess({"LOG_LEVEL": "INFO", "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False})
    for spider in SPIDERS:
        settings = {"FEEDS": {f"{spider.name}.jsonl": {"format": "jsonlines"}}, "CONCURRENT_REQUESTS": 1}
        if os.environ.get("WITH_LINE"):
            settings |= {
                "ADDONS": {"amicrawl.crawl.addon.ArchiveAddon": 300},
                "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
                "AMICRAWL_OUT": f"ami-out/{spider.name}",
            }
        crawler = Crawler(spider, settings, init_reactor=spider is SPIDERS[0])
        process.crawl(crawler)
    process.start()


if __name__ == "__main__":
    main()
