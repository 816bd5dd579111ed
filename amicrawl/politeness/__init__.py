"""When a host may be contacted, how many requests may be under way, and whose fault a failure is.

Rules only: nothing here reads a clock, waits, or uses the network. The moment arrives as an argument
(`now`, monotonic seconds as a float) and every response is a value. A host is its host key, the high
half of a URL key: an unsigned 64-bit integer.

* `Gates`: the moment before which a host must not be contacted.
* `InflightLimit`: how many requests may be under way over all hosts.
* `HostBreaker`: which hosts are given up, and what follows from a failure.
* `backoff`: how long a failed fetch waits for its next attempt.
* `HostPace`: how far apart requests to a host are to be, by how it responds.
* `retry_after_seconds`: for how long a server wants no request.
* `robots`, `robots_policy`: what robots.txt says, and what it means that it could not be had. There,
  `now` is Unix time: what is known of it outlives the process.
* `addresses`: many small hosts on one machine take turns.
* `throttle`: the in-flight limit, the limit for the first byte of a response, and how many bytes a
  second may come.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.politeness.addresses import AddressGates
    from amicrawl.politeness.breaker import BLAME, Blame, HostBreaker, Verdict, backoff
    from amicrawl.politeness.gate import Gates
    from amicrawl.politeness.pace import BUSY, HostPace, PaceRules, retry_after_seconds
    from amicrawl.politeness.robots_policy import (
        LONGEST_UNREACHED,
        Access,
        RobotsCache,
        RobotsVerdict,
        honoured_delay,
        is_bound,
        judge_absence,
        judge_robots,
        max_age_of,
        robots_url,
        row_of_verdict,
    )
    from amicrawl.politeness.throttle import AdaptiveTimeout, Bandwidth, InflightLimit
else:
    __getattr__, __all__ = lazy_exports(__spec__)
