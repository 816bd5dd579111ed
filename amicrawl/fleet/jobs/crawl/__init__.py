"""A crawl that is a job: what it reports to Redis, and how it is controlled from there.

* `opening`: the job read and claimed, before anything is fetched.
* `specification`: its record as settings and as arguments of the spider.
* `leased`: a disk that is only written to while the lease is good, and the fence in the directory.
* `joblink`: the extension that feeds the link (`amicrawl.fleet.jobs.link`) and follows its responses.
* `live_job_settings`: live settings, applied to the `Run`; `reporting`: figures, facts and log entries.
"""
