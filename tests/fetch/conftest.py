"""A wire to loopback servers, on asyncio's own loop and on uvloop."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from amicrawl.fetch import Guard, Limits, Wire
from amicrawl.fetch.resolver import Resolver, Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fetch.serving import Run

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@pytest.fixture
def run_once() -> Iterator[Run]:
    """As `run`, for what does not depend on the loop."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def make_wire(tmp_path: Path) -> Callable[..., Wire]:
    """Return a wire that may dial loopback addresses and is impatient; keywords change its limits."""

    def make(*, guard: Guard | None = None, wire: dict[str, Any] | None = None, **limits: Any) -> Wire:
        patience = {"connect_timeout": 30.0, "timeout": 60.0, "linger": 0.05, "idle": 0.2}
        bounds = Limits(**{"spool_dir": tmp_path, **patience, **limits})
        given = dict(wire or {})
        if "resolve" in given:
            names = Threads(given.pop("resolve"), keep=given.pop("keep_names", 60.0))
            given["resolver"] = Resolver(names)
        return Wire(bounds, guard=guard or Guard(LOOPBACK), **given)

    return make
