"""A crawl that is a job: what it reports to Redis, and what it is asked there.

* `opening`: the job read and claimed, before anything is fetched; `asking`: what it asks of the spider.
* `leased`: a disk that is only written to while the lease is good, and the fence in the directory.
* `joblink`: the extension that feeds the link (`amicrawl.jobs.link`) and follows its answers.
* `orders`: live settings, done to the `Run`; `facts`: what is reported.
"""
