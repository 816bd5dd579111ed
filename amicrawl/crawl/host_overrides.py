"""What settings say of single hosts: how often each may be contacted, and what robots.txt decides there.

A crawl reads it once. `pacing` goes by delays and numbers, `robots` and `amicrawl explain` by the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from amicrawl.config import GREATEST_NUMBER, LONGEST_TIME, Robots
from amicrawl.errors import UsageError
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from amicrawl.urls import UrlKey

T = TypeVar("T")

NAMES = frozenset({"delay", "per_host", "robots", "auth", "auth_port", "allow_plain"})
"""What may be said of a host. `credentials` reads the last three."""


class HostOverrides:
    """What holds for single hosts, by `AMICRAWL_HOST_OVERRIDES`; empty for most crawls.

    An override holds for the host that it names and for all below it. What robots.txt decides follows
    the host of the URL, the longest name first. How often a host may be contacted follows its host key,
    since hosts of one registered domain share a gate: of several overrides for one, the longest delay
    and the smallest number count.
    """

    def __init__(
        self, given: Mapping[str, Mapping[str, Any]], *, key_of: Callable[[str], UrlKey | Refused]
    ) -> None:
        """Read *given*, by host name; *key_of* gives the key of a URL.

        Raises UsageError for a name that is not a host, or a value that cannot be followed.
        """
        self.delays: dict[int, float] = {}
        """Seconds between two requests, by host key."""
        self.per_host: dict[int, int] = {}
        """Requests that may be in flight at once, by host key."""
        self.robots: dict[str, Robots] = {}
        """What robots.txt decides, by host name, for `robots_at`."""
        for name, values in given.items():
            host = _host_key(name, key_of)
            if unknown := sorted(values.keys() - NAMES):
                raise UsageError(
                    f"Setting AMICRAWL_HOST_OVERRIDES has {', '.join(map(repr, unknown))} for {name}: "
                    f"known are {', '.join(sorted(NAMES))}."
                )
            if (delay := _read(name, values, "delay", _seconds)) is not None:
                self.delays[host] = max(delay, self.delays.get(host, 0.0))
            if (limit := _read(name, values, "per_host", _count)) is not None:
                self.per_host[host] = min(limit, self.per_host.get(host, limit))
            if (robots := _read(name, values, "robots", Robots)) is not None:
                self.robots[plain_host(name)] = robots

    @property
    def obey_somewhere(self) -> bool:
        """Whether robots.txt decides something at one of the hosts."""
        return any(robots is not Robots.IGNORE for robots in self.robots.values())

    def robots_at(self, url: str, default: Robots) -> Robots:
        """Return what robots.txt decides at the host of *url*; *default* where nothing is said of it."""
        target = fetchable(url)
        name = "" if isinstance(target, Refused) else plain_host(target.host)
        while name:
            if name in self.robots:
                return self.robots[name]
            name = name.partition(".")[2]
        return default


def plain_host(host: str) -> str:
    """Return *host* as it is in the URLs of requests, without the final dot."""
    target = fetchable(f"http://{host}/")
    name = host if isinstance(target, Refused) else target.host
    return name.lower().removesuffix(".")


def _host_key(name: str, key_of: Callable[[str], UrlKey | Refused]) -> int:
    key = None if not name or set("/@?#") & set(name) else key_of(f"http://{name}/")
    if key is None or isinstance(key, Refused):
        raise UsageError(f"Setting AMICRAWL_HOST_OVERRIDES has {name!r}, which is not a host name.")
    return key.host


def _read(name: str, values: Mapping[str, Any], what: str, convert: Callable[[Any], T]) -> T | None:
    """Return what *values*, those for the host *name*, say of *what*; None where they do not."""
    if what not in values:
        return None
    try:
        return convert(values[what])
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"Setting AMICRAWL_HOST_OVERRIDES has {what} = {values[what]!r} for {name}: "
            "that cannot be followed. See docs/politeness.md."
        ) from error


def _seconds(value: object) -> float:
    seconds = float(str(value))
    if not 0 <= seconds <= LONGEST_TIME:
        raise ValueError
    return seconds


def _count(value: object) -> int:
    count = int(str(value))
    if not 1 <= count <= GREATEST_NUMBER:
        raise ValueError
    return count
