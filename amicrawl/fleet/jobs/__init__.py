"""Jobs: crawls submitted, claimed, controlled and watched over Redis, in the layout of ArchiveBot.

* Submitted, changed: `submission.py`, `verbs.py`, `queues.py`; `live_settings.py` checks.
* Read: `lookup.py`, `watching.py`; `record.py` parses what is found.
* Run: `pipeline.py`, a `supervisor.py`, with `attempt.py` and `ending.py`.
* In the crawl: `crawl`, over `link.py`, with `live_settings.py`.
* Beside jobs: `seedqueue.py` (seeds as they come), and the room `sharing` (one crawl on many machines).

Redis itself is the room `database`, who may crawl a job is `leases`, what of it outlives its process
`checkpoints`, and what it says `logs`. Users read `docs/jobs.md`.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.fleet.jobs.attempt import Attempt, Workshop, crawl_environment, take_directory
    from amicrawl.fleet.jobs.child import Child
    from amicrawl.fleet.jobs.crawl.opening import store_of_crawl
    from amicrawl.fleet.jobs.live_settings import LONGEST_PATTERN, checked_pattern
    from amicrawl.fleet.jobs.lookup import WrongStateError
    from amicrawl.fleet.jobs.pipeline import Pipeline, PipelineOptions
    from amicrawl.fleet.jobs.pipeline_record import (
        PipelineIdentity,
        is_silent,
        pipelines,
        tell_to_drain,
    )
    from amicrawl.fleet.jobs.queues import queue_order
    from amicrawl.fleet.jobs.record import ENDED, RESPONSES, JobRecord, JobState
    from amicrawl.fleet.jobs.submission import JobExistsError, Submission, Submitted, submit
    from amicrawl.fleet.jobs.supervisor import Mode, Supervisor
    from amicrawl.fleet.jobs.watching import (
        Broadcasts,
        JobNames,
        Live,
        SeenJob,
        Updates,
        Watch,
    )
else:
    __getattr__, __all__ = lazy_exports(__spec__)
