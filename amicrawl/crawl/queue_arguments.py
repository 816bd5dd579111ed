"""The arguments of the spider `queue`: always strings, checked here, once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_KEY = "%(name)s:start_urls"
"""scrapy-redis's; the name of the spider is filled in."""

_CONSUMER = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_MOST = 5_000
_NUMBER = re.compile(r"[0-9]{1,7}")


@dataclass(frozen=True, slots=True)
class QueueArguments:
    """The arguments of the spider `queue`."""

    redis_key: str
    """The list, set, sorted set or stream that holds the seeds."""
    idle: float | None = None
    """Seconds without anything to do after which the crawl ends; None: it stays."""
    batch: int = 1000
    """Seeds that are taken and not fetched, at most; 5000 are possible."""
    consumer: str = ""
    """By which name seeds are taken; empty for that of the directory."""
    takeover: int = 300
    """Seconds of silence after which another crawl's seeds are taken over."""
    out: str | None = None
    """Directory for the output."""
    run_id: str | None = None
    """Sub-directory of `out` for this run."""
    config: str | None = None
    """The crawl file that settings were taken from, where they were."""

    @classmethod
    def parse(cls, given: Mapping[str, object], *, name: str, default_key: str = "") -> Self:
        """Check *given* for the spider *name*. Raises UsageError, naming what cannot be followed."""
        values = {key: str(value) for key, value in given.items() if not key.startswith("_")}
        unknown = sorted(values.keys() - cls.__dataclass_fields__.keys())
        if unknown:
            raise UsageError(
                f"Unknown argument {unknown[0]} for the spider `{name}`. "
                f"Known are {', '.join(cls.__dataclass_fields__)}."
            )
        key = (values.get("redis_key") or default_key or DEFAULT_KEY).replace("%(name)s", name)
        if not key.isprintable() or len(key) > 500:
            raise UsageError(f"Argument redis_key={key[:60]!r} is not the name of a key in Redis.")
        consumer = values.get("consumer", "")
        if consumer and not _CONSUMER.fullmatch(consumer):
            raise UsageError(
                f"Argument consumer={consumer!r} has others than letters, digits, `.`, `_`, `-`."
            )
        idle = values.get("idle")
        return cls(
            redis_key=key,
            idle=None if not idle else float(_number("idle", idle)),
            batch=min(max(_number("batch", values.get("batch", "1000")), 1), _MOST),
            consumer=consumer,
            takeover=max(_number("takeover", values.get("takeover", "300")), 1),
            out=values.get("out") or None,
            run_id=values.get("run_id") or None,
            config=values.get("config") or None,
        )


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"Argument {name}={text!r} is not a whole number: give 0 or more.")
    return int(text)
