"""Settings, arguments and parameters as command lines give them: `NAME=VALUE`, any number of times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


def pairs(written: Iterable[str], *, option: str) -> dict[str, str]:
    """Return what was *written* behind *option* as a dictionary; UsageError for what is no pair."""
    found = {}
    for text in written:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r} is not NAME=VALUE. Write it so.")
        found[name] = value
    return found


def passed_on(written: Iterable[str] | None) -> list[str]:
    """Return settings as the command line of a crawl takes them; UsageError for what is no pair."""
    settings = list(written or ())
    pairs(settings, option="-s")
    return [part for setting in settings for part in ("-s", setting)]
