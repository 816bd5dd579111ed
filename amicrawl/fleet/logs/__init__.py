"""The log of a job: its entries, those yet to be sent, and what of it is in Redis (`job_log.py`)."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.fleet.logs.job_log import (
        LONGEST_ENTRY,
        MOST_ENTRIES,
        Download,
        Entry,
        Ignore,
        Inbox,
        LogPage,
        NotAnEntryError,
        Stdout,
        encoded,
        entries_after,
        newest_entries,
        parsed,
        say,
        trim_log,
    )
else:
    __getattr__, __all__ = lazy_exports(__spec__)
