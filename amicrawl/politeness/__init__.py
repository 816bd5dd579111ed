"""When a host may be asked, how many requests may be under way, and whose fault a failure is.

Rules only: nothing here reads a clock, waits, or talks to anybody. The moment arrives as an argument
(`now`, monotonic seconds as a float) and every answer is a value. A host is its host key, the high
half of a URL key: an unsigned 64-bit integer.

* `Gates`: the moment before which a host must not be asked.
* `InflightLimit`: how many requests may be under way over all hosts.
* `HostBreaker`: which hosts are given up, and what follows from a failure.
* `backoff`: how long a failed fetch waits for its next attempt.
"""

from amicrawl.politeness.breaker import BLAME, Blame, HostBreaker, Verdict
from amicrawl.politeness.gate import Gates
from amicrawl.politeness.retry import backoff
from amicrawl.politeness.throttle import InflightLimit

__all__ = ["BLAME", "Blame", "Gates", "HostBreaker", "InflightLimit", "Verdict", "backoff"]
