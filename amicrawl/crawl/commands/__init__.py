"""Commands of Scrapy here: `crawl`, with exit codes, and `genspider`, with a template that archives."""
