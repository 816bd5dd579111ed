"""Spiders: what to crawl, in a few lines each, since how to crawl lies below them."""
