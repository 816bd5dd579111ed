"""Spiders that share a process, a directory, or neither; run as a script: SITE FORM."""

import os
import sys

import scrapy


class PagesSpider(scrapy.Spider):
    name = "pages"
    section = "a"

    async def start(self):
        for n in range(5):
            yield scrapy.Request(f"{self.site}/{self.section}/{n}", callback=self.parse)

    def parse(self, response):
        yield {"path": response.url.split("/", 3)[3], "spider": self.section}


class OtherSpider(PagesSpider):
    name = "other"
    section = "b"


def settings(out):
    given = {"FEEDS": {"items.jsonl": {"format": "jsonlines"}}, "LOG_LEVEL": "INFO", "TELNETCONSOLE_ENABLED": False}
    if os.environ.get("WITH_LINE"):
        given |= {
            "ADDONS": {"amicrawl.crawl.addon.ArchiveAddon": 300},
            "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
            "AMICRAWL_OUT": out,
        }
    return given


def main(site, form):
    PagesSpider.site = site
    if form == "process":
        from scrapy.crawler import CrawlerProcess

        process = CrawlerProcess(settings("ami-out"))
        process.crawl(PagesSpider)
        process.crawl(OtherSpider)
        process.start()
    elif form == "runner":
        from scrapy.utils.reactor import install_reactor

        install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
        from scrapy.crawler import CrawlerRunner
        from scrapy.utils.log import configure_logging
        from twisted.internet import reactor

        configure_logging({"LOG_LEVEL": "INFO"})
        runner = CrawlerRunner(settings("ami-out"))
        runner.crawl(PagesSpider).addBoth(lambda _: reactor.stop())
        reactor.run()
    elif form == "async-runner":
        from scrapy.crawler import AsyncCrawlerRunner
        from scrapy.utils.defer import deferred_from_coro
        from scrapy.utils.log import configure_logging
        from scrapy.utils.reactor import install_reactor
        from twisted.internet.task import react

        configure_logging({"LOG_LEVEL": "INFO"})

        async def crawl():
            runner = AsyncCrawlerRunner(settings("ami-out"))
            await runner.crawl(PagesSpider)

        install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
        react(lambda _: deferred_from_coro(crawl()))
    elif form == "select":
        from scrapy.crawler import CrawlerProcess

        process = CrawlerProcess(settings("ami-out") | {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"})
        process.crawl(PagesSpider)
        process.start()
        sys.exit(1 if process.bootstrap_failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
