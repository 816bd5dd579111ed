"""Leases: which process has a job or a partition, until when, and what it may write.

lease        the claim in Redis: taken, renewed, given back, with a token that grows
lease_time   whether a lease is valid, by the clock of the one who holds it
leased       a disk that is only written to while it is, and the fence of a newer owner
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

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
    __getattr__ = lazy_exports(
        __name__,
        ABORTED_KEPT="lease",
        Claim="lease",
        Claims="lease",
        Finished="lease",
        GRACE="lease",
        GivenBack="lease",
        Happened="lease",
        LEASE="lease",
        NOTIFICATIONS_KEPT="lease",
        RefusedEntry="lease",
        Renewal="lease",
        ident_of_unit="lease",
        milliseconds="lease",
        HeartbeatMonitor="lease_time",
        HeldLease="lease_time",
        LEASE_VARIABLE="lease_time",
        TOKEN_VARIABLE="lease_time",  # noqa: S106  # the name of a variable
        UNIT_VARIABLE="lease_time",
        Fence="leased",
        LeaseLost="leased",
        LeasedDisk="leased",
        raise_fence="leased",
    )

__all__ = [
    "ABORTED_KEPT",
    "GRACE",
    "LEASE",
    "LEASE_VARIABLE",
    "NOTIFICATIONS_KEPT",
    "TOKEN_VARIABLE",
    "UNIT_VARIABLE",
    "Claim",
    "Claims",
    "Fence",
    "Finished",
    "GivenBack",
    "Happened",
    "HeartbeatMonitor",
    "HeldLease",
    "LeaseLost",
    "LeasedDisk",
    "RefusedEntry",
    "Renewal",
    "ident_of_unit",
    "milliseconds",
    "raise_fence",
]
