"""Guests: spiders of other projects, which keep Scrapy's own machinery and are archived.

settings     what the add-on sets for them, and which of its settings they follow
handler      the download handler: what Scrapy's semantics demand, made from a capture
connections  the project's resolver of host names, and Scrapy's TLS settings
downloader   Scrapy's downloader; what other handlers deliver is reconstructed and archived
scheduler    Scrapy's scheduler, with a `JOBDIR` that survives a kill
"""
