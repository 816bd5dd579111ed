"""Jobs: crawls submitted, claimed, controlled and watched over Redis, in the layout of ArchiveBot.

The only room that talks to Redis, through a `JobStore` (`connection.py`).

* Submitted, changed: `submission.py`, `verbs.py`, `queues.py`; `ident.py`, `live_settings.py` check.
* Read: `lookup.py`, `logs.py`, `watching.py`; `record.py` parses what is found.
* Run: `pipeline.py`, a `supervisor.py`, with `lease.py`, `attempt.py` and `ending.py`.
* In the crawl: `link.py`, with `logs.py` and `live_settings.py`.
* On disk: `data_directory.py`; in a bucket: `checkpoint.py`, `job_bucket.py`.
* Beside jobs: `sharing` (one crawl on many machines), `seedqueue.py` (seeds as they come).

Values that other clients may have written are read by `redis_values.py`; those that cannot be used
become dead letters. Begin with `keys.py`, which lists every key. Users read `docs/jobs.md`.
"""
