"""The Scrapy side of a crawl: add-on, scheduler, dispatcher, handlers and pipelines."""
