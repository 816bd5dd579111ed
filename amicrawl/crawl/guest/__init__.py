"""Guests: spiders of other projects, which keep Scrapy's own machinery and are archived.

settings     what the add-on sets for them, and which of its settings they follow
names        host names, looked up by the project's resolver
handler      the download handler: what Scrapy's semantics demand, made from a capture
responses    from a capture to Scrapy's response, or to one of its exceptions
foreign      what other download handlers deliver, reconstructed and archived
downloader   Scrapy's downloader, with these handlers around it
scheduler    Scrapy's scheduler, with a `JOBDIR` that survives a kill
"""
