"""Jobs: crawls asked for, claimed, steered and watched over Redis, in the layout of ArchiveBot.

The only room that talks to Redis, through a `JobStore` (`connection.py`).

* Submitted, changed: `submission.py`, `verbs.py`, `queues.py`; `ident.py`, `live_settings.py` check.
* Read: `lookup.py`, `logs.py`, `watching.py`; `record.py` and `log_entries.py` parse what is found.
* Run: `pipeline.py`, a `supervisor.py`, with `lease.py`, `attempt.py`, `ending.py` and `reaper.py`.
* In the crawl: `link.py`, with `log_entries.py`, `live_settings.py` and `job_copy.py`.
* Beside jobs: `sharing` (one crawl on many machines), `seedqueue.py` (seeds as they come).

Values that other clients may have written are read by `redis_values.py`; what cannot be used goes to
`dead_letters.py`. Begin with `keys.py`, which lists every key. Users read `docs/jobs.md`.
"""
