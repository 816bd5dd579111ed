"""A crawl that is a job: what Redis is told of it, and what it is told by Redis.

* `opening`: the job read and claimed, before anything is fetched; `asking`: what it asks of the spider.
* `leased`: a disk that is only written to while the lease is good, and the fence in the directory.
* `joblink`: the extension that feeds the link (`amicrawl.jobs.link`) and follows its answers.
* `orders`: live settings, done to the `Run`; `figures`, `facts`: what is told.
"""
