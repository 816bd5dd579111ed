"""Dead letters: what lay in Redis and could not be read, with where and why, for a person to look at.

The database is shared, and any program that reaches it may write anything. What a reader cannot use is
copied here and passed over; no program stops for it. Letters are bounded in size and number, and one
that comes again only gets a new date. They are in a sorted set of JSON texts by time.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, NamedTuple

import redis

if TYPE_CHECKING:
    from amicrawl.jobs.connection import JobStore

logger = logging.getLogger(__name__)

MOST = 1000
"""Letters that are kept; the oldest go first."""
AGAIN = 60.0
"""Seconds after which a letter that comes again gets a new date."""
LONGEST = 500
"""Characters of what was found that are kept."""


class Letter(NamedTuple):
    """One thing that could not be read, or acted on."""

    seen: float
    """When it was last met, Unix seconds."""
    where: str
    """The key, and the place in it."""
    why: str
    """What is wrong with it."""
    excerpt: str
    """How it begins, unprintable characters escaped."""


def put(store: JobStore, *, where: str, why: str, value: str = "", now: float | None = None) -> None:
    """Keep a letter about *value*. Never raises: a reader without the right to write goes on reading."""
    fields = {"where": _shown(where), "why": _shown(why), "excerpt": _shown(value)}
    text, moment = json.dumps(fields), time.time() if now is None else now
    # A reader that looks every second would write as often.
    if moment - store.reported.get(text, -AGAIN) < AGAIN:
        return
    if text not in store.reported:
        logger.warning("Redis: %s: %s", fields["where"], fields["why"])
    if len(store.reported) >= MOST:
        store.reported.clear()
    store.reported[text] = moment
    try:
        pipe = store.client.pipeline(transaction=False)
        pipe.zadd(store.keys.dead_letters, {text: moment})
        pipe.zremrangebyrank(store.keys.dead_letters, 0, -MOST - 1)
        pipe.execute()
    except redis.RedisError as error:
        logger.debug("that is not among the dead letters: %s", error)


def letters(store: JobStore, count: int = MOST) -> list[Letter]:
    """Return the newest *count* letters, the newest first."""
    reply = store.scripts(
        "read",
        keys=[store.keys.dead_letters],
        args=["zset", count, 10 * LONGEST, 10 * LONGEST * MOST, "-inf", "+inf", "newest"],
    )
    elements = reply[2]
    found = []
    for text, score in zip(elements[::2], elements[1::2], strict=True):
        try:
            fields = json.loads(text)
            found.append(
                Letter(float(score), *(str(fields[name]) for name in ("where", "why", "excerpt")))
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            found.append(Letter(0.0, store.keys.dead_letters, "it is not a dead letter", _shown(text)))
    return found


def clear(store: JobStore) -> int:
    """Throw all letters away; return how many there were."""
    pipe = store.client.pipeline()
    pipe.zcard(store.keys.dead_letters)
    pipe.delete(store.keys.dead_letters)
    return int(pipe.execute(raise_on_error=False)[0] or 0)


def _shown(text: str) -> str:
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in cut
    )
