"""When a host may be asked, how many requests may be under way, and whose fault a failure is.

Rules only: nothing here reads a clock, waits, or uses the network. The moment arrives as an argument
(`now`, monotonic seconds as a float) and every answer is a value. A host is its host key, the high
half of a URL key: an unsigned 64-bit integer.

* `Gates`: the moment before which a host must not be asked.
* `InflightLimit`: how many requests may be under way over all hosts.
* `HostBreaker`: which hosts are given up, and what follows from a failure.
* `backoff`: how long a failed fetch waits for its next attempt.
* `HostPace`: how far apart requests to a host are to be, by how it answers.
* `retry_after_seconds`: how long a server asks to be left alone.
* `robots`, `robots_policy`: what robots.txt says, and what it means that it could not be had. There,
  `now` is Unix time: what is known of it outlives the process.
* `addresses`: many small hosts on one machine are asked in turn.
* `throttle`: the in-flight limit, how long the begin of an answer is waited for, and how many bytes a
  second may come.
"""

from amicrawl.politeness.breaker import BLAME, Blame, HostBreaker, Verdict, backoff
from amicrawl.politeness.gate import Gates
from amicrawl.politeness.pace import HostPace, PaceRules, retry_after_seconds
from amicrawl.politeness.throttle import InflightLimit

__all__ = [
    "BLAME",
    "Blame",
    "Gates",
    "HostBreaker",
    "HostPace",
    "InflightLimit",
    "PaceRules",
    "Verdict",
    "backoff",
    "retry_after_seconds",
]
