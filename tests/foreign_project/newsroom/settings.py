"""A project's settings, as `scrapy startproject` leaves them, and one line more."""

BOT_NAME = "newsroom"
SPIDER_MODULES = ["newsroom.spiders"]
ITEM_PIPELINES = {"newsroom.pipelines.TitlePipeline": 300}
LOG_LEVEL = "WARNING"

ADDONS = {"amicrawl.crawl.addon.ArchiveAddon": 300}
