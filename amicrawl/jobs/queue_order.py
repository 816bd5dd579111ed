"""Which queues a pipeline takes jobs from, and in which order. Pure.

As ArchiveBot's pipelines do, made the same every time: the queues of all tags that the nickname
contains, then the large ones where the pipeline takes those, then all others, then the shallow ones. A
tag is any part of the nickname, so no queue has to be searched for.
"""

from __future__ import annotations

import re

from amicrawl.errors import UsageError
from amicrawl.jobs.keys import PENDING, PENDING_LARGE, PENDING_SHALLOW, TAGGED

_NICKNAME = re.compile(r"[A-Za-z0-9_-]{3,30}")


def queue_order(nickname: str, *, large: bool = False, shallow_only: bool = False) -> list[str]:
    """Return the names of the queues that the pipeline *nickname* looks into, first to last.

    Longer tags come first, equally long ones by alphabet. Raises UsageError for a nickname that is none.
    """
    check_nickname(nickname)
    if shallow_only:
        return [PENDING_SHALLOW, *([PENDING_LARGE] if large else [])]
    length = len(nickname)
    tags = {nickname[i:j] for i in range(length) for j in range(i, length + 1)}
    tagged = [TAGGED + tag for tag in sorted(tags, key=lambda tag: (-len(tag), tag))]
    return [*tagged, *([PENDING_LARGE] if large else []), PENDING, PENDING_SHALLOW]


def check_nickname(nickname: str) -> None:
    """Raise UsageError unless *nickname* can be a pipeline's."""
    if not _NICKNAME.fullmatch(nickname):
        raise UsageError(
            f"{nickname!r} is not a name for a pipeline, which has 3 to 30 letters, digits, _ and -. "
            "Give another with --name."
        )
