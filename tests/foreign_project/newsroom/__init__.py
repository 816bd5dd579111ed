"""Somebody else's Scrapy project: all it has of amicrawl is one line in its settings."""
