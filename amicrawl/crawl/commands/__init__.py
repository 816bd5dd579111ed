"""Commands of the Scrapy project: `scrapy crawl`, with exit codes that say what happened."""
