"""Hosts: the names that a request may be for, and the pages that a change may come from. Pure.

A page of another site can have its own name lead to this machine (DNS rebinding), and then talks to the
dashboard as if they were one site. What it cannot do is change the Host header: so only names that are
known are answered. Numbers are not names: a page that was loaded from the address of this machine is the
dashboard's own.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LOCAL = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9_.-]{1,253}))(?::[0-9]{1,5})?\Z"
)


def is_public(host: str) -> bool:
    """Tell whether others than this machine reach what is bound to *host*."""
    if host.casefold() == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


class Hosts:
    """Which hosts a dashboard that is bound to *bound* answers for: that, local names and *further*."""

    def __init__(self, bound: str, further: Iterable[str] = ()) -> None:
        self._names = {name.casefold().rstrip(".") for name in (*LOCAL, bound, *further)}
        self._any_address = bound in {"0.0.0.0", "::"}  # noqa: S104  # compared, not bound to

    def allows(self, host: str) -> bool:
        """Tell whether a request with the Host header *host* is for this dashboard."""
        found = _HOST.match(host)
        if found is None:
            return False
        name = (found["six"] or found["name"]).casefold().rstrip(".")
        return name in self._names or (self._any_address and _is_address(name))


def may_change(*, origin: str | None, fetch_site: str | None, own: str) -> bool:
    """Tell whether a request for a change comes from a page of ours, or from no page at all.

    *origin* and *fetch_site* are the headers `Origin` and `Sec-Fetch-Site`, *own* is our origin as the
    request addresses it. Browsers send the first with every POST; programs send neither.
    """
    if fetch_site is not None and fetch_site != "same-origin":
        return False
    return origin is None or origin.casefold() == own.casefold()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
