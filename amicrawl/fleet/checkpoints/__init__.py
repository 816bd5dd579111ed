"""What of a job outlives its process: its directory on disk, and what of it is in a bucket.

data_directory   a directory for each job, and what the crawl remembers of its job there
checkpoint       frontier and index of a crawl that goes on, copied to a bucket
job_bucket       a job moved from machine to machine: shipped, fetched, begun anew
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.fleet.checkpoints.checkpoint import (
        SLOTS,
        Checkpoints,
        Copying,
        checkpoint_url,
        is_begun,
        newer_checkpoints,
        path_of,
        restore_checkpoint,
        ship_state,
    )
    from amicrawl.fleet.checkpoints.data_directory import (
        CONSOLE,
        STOP_FILE,
        JobCopy,
        is_base,
        is_base_of,
        new_base,
        opened_store,
        show_life,
        write_copy,
    )
    from amicrawl.fleet.checkpoints.job_bucket import (
        NothingToFetchError,
        begin_anew,
        end_of_finished,
        fetch,
        fetch_finished,
        ship,
        url_of_job,
    )
else:
    __getattr__, __all__ = lazy_exports(__spec__)
