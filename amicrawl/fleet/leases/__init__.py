"""Leases: which process has a job or a partition, until when, and what it may write.

lease        the claim in Redis: taken, renewed, given back, with a token that grows
lease_time   whether a lease is valid, by the clock of the one who holds it
leased       a disk that is only written to while it is, and the fence of a newer owner
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.fleet.leases.lease import (
        ABORTED_KEPT,
        GRACE,
        LEASE,
        NOTIFICATIONS_KEPT,
        Claim,
        Claims,
        Finished,
        GivenBack,
        Happened,
        RefusedEntry,
        Renewal,
        ident_of_unit,
        milliseconds,
    )
    from amicrawl.fleet.leases.lease_time import (
        LEASE_VARIABLE,
        TOKEN_VARIABLE,
        UNIT_VARIABLE,
        HeartbeatMonitor,
        HeldLease,
    )
    from amicrawl.fleet.leases.leased import Fence, LeasedDisk, LeaseLost, raise_fence
else:
    __getattr__, __all__ = lazy_exports(__spec__)
