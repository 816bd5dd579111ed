"""Golden vectors of the pace of a host and the gates of addresses: what agrees, what differs, and why.

A host's interval of the reference is one number, which errors, latencies and Retry-After all move; ours
is the longest of several. They are compared by when the host may be contacted next. `WHY` names the
rules under which that comes out otherwise, and each case that does must fall under one of them.
"""

from __future__ import annotations

from collections import Counter
from math import floor, inf
from typing import TYPE_CHECKING, Any

import pytest
from urls.vectors import VECTOR_FILES, lines

from amicrawl.politeness.addresses import AddressGates
from amicrawl.politeness.pace import BUSY, HostPace, PaceRules, PaceState

if TYPE_CHECKING:
    from collections.abc import Iterator

WHY = {
    "no response": "a fetch without a response is no sign of health, so it leaves the back-off alone",
    "slower": "a slow response lengthens the interval to a multiple of the latency, not by three tenths",
    "short": "a back-off begins at a second, and doubles what robots.txt sets",
}
"""Why a host may be contacted at another moment than with the reference."""


def vectors(kind: str) -> Iterator[dict[str, Any]]:
    """Yield the vectors of *kind*."""
    return lines(VECTOR_FILES, "robots.jsonl", kind=kind)


def rules_of(config: dict[str, Any]) -> PaceRules:
    """Return our rules as close to those of the reference as they can be set."""
    return PaceRules(
        delay=config["floor_ms"] / 1000,
        latency_factor=0.0,
        back_off_factor=config["backoff"],
        back_off_ceiling=config["ceiling_ms"] / 1000,
        narrow=config["narrow_ms"] / 1000,
        decay=0.0,
        retry_after_cap=config["ceiling_ms"] / 1000,
    )


def waits(rules: PaceRules, line: dict[str, Any]) -> float:
    """Return the seconds until the host may be contacted again."""
    # The reference takes every error for one of a host that is overloaded.
    state = PaceState(line["crawl_delay_ds"] / 10, back_off=line["adaptive_ms"] / 1000, errors=1.0)
    interval = rules.interval(rules.after(state, line["status"]))
    requested = line["retry_after_ds"] / 10
    return max(
        interval, HostPace(rules).responded(1, line["status"], retry_after=requested, now=0.0).until
    )


def reason(config: dict[str, Any], line: dict[str, Any]) -> str | None:
    """Return the reason in `WHY` that applies, from what the vector is told alone."""
    before = line["previous_latency_ms"]
    if line["status"] in BUSY:
        doubled_from = max(line["crawl_delay_ds"] / 10, 1.0)
        return "short" if line["adaptive_ms"] / 1000 < doubled_from else None
    if before and line["latency_ms"] > before * config["latency_rise"]:
        return "slower"
    return "no response" if line["status"] == 0 else None


def test_a_host_may_be_contacted_when_the_reference_would_but_for_what_is_told() -> None:
    configs = {config["name"]: config for config in vectors("politeness_config")}
    agree, differ = 0, Counter[str | None]()
    for line in vectors("adapt"):
        config = configs[line["config"]]
        if waits(rules_of(config), line) == pytest.approx(line["clamped_ns"] / 1e9, abs=1e-9):
            agree += 1
        else:
            differ[reason(config, line)] += 1
    assert differ[None] == 0
    assert set(differ) - {None} == set(WHY)  # what no longer differs must not stay in the table
    assert agree > sum(differ.values())


def test_the_defaults_are_those_of_the_reference_where_they_mean_the_same() -> None:
    config = next(config for config in vectors("politeness_config") if config["name"] == "default")
    rules = PaceRules()
    assert rules.delay == config["default_ms"] / 1000
    assert rules.back_off_factor == config["backoff"]
    assert rules.back_off_ceiling == config["ceiling_ms"] / 1000
    assert rules.narrow == config["narrow_ms"] / 1000


def test_addresses_open_when_they_would_in_whole_seconds() -> None:
    """The reference rounds down to whole seconds, and up to one; we keep the fractions."""
    (line,) = vectors("ip_table")
    gates = AddressGates(line["floor_ms"] / 1000)
    rounded_up = set[str]()
    compared = 0
    for step in line["steps"]:
        # All zeros stand for an address that is not known.
        address = f"192.0.2.{step[1]}" if step[1] else ""
        if step[0] == "spend":
            _, _, now, interval = step
            gates.start(address, now, interval=interval / 1000)
            if max(interval, line["floor_ms"]) < 1000:
                rounded_up.add(address)
            else:
                rounded_up.discard(address)
            continue
        opens = gates.opens_at(address)
        compared += 1
        if address in rounded_up:
            assert step[2] - 1 <= opens < step[2]
        else:
            assert (0 if opens == -inf else floor(opens)) == step[2]
    assert compared >= 15
