"""Policy: the settings that keep URLs out, compared with those of the last crawl into the directory.

    address     which addresses may be dialled       rows withheld for their address are due again
    robots      whether robots.txt decides           rows excluded by robots.txt are due again
    selection   which links are taken                archived pages are read again for their links

`frontier/policy.json` holds what was in force last, patterns of the control file that came while the
crawl ran among them. It is written once what a change orders is in the
journal of the frontier, and before the first request, so that a crawl that is killed neither forgets a
change nor takes one for made.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.clock import unix_ms_now
from amicrawl.config import PREFIX
from amicrawl.disk import replace_file
from amicrawl.jsontext import parsed_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from amicrawl.config import CrawlConfig
    from amicrawl.disk import Disk

FILE_NAME = "policy.json"
REQUESTED_AGAIN = "asked_again"
"""When rows were last made due before their time, in Unix milliseconds: what the index says of failures
before that is out of date."""

_CONTROL = "control/ignores"
_ADDRESS = ("allow_private", "proxy")
_SELECTION = (
    *(
        "surts",
        "hosts",
        "domains",
        "include",
        "exclude",
        "max_hops",
        "requisites",
        "requisites_off_site",
        "max_requisite_hops",
        "max_page_requisites",
        "calendar_pages",
    ),
    *("links_off_site", "ignore_sets", "ignores", "max_urls", "max_host_urls"),
)

Policy = dict[str, dict[str, Any]]
"""Values by setting or argument, by the part of the policy that they are of."""


def policy_of(
    config: CrawlConfig,
    *,
    obeys: bool,
    starts: Iterable[str] | None = None,
    depth: str = "",
    patterns: Iterable[str] = (),
) -> Policy:
    """Return what *config* keeps out; *obeys* tells whether robots.txt counts anywhere.

    *starts* and *depth* are those of a crawl that follows links, None for any other; *patterns* those of
    its control file.
    """
    values = config.model_dump(mode="json", include={*_ADDRESS, *_SELECTION, "robots", "host_overrides"})
    overrides = {
        host: each["robots"] for host, each in config.host_overrides.items() if "robots" in each
    }
    # A proxy may be given with its password.
    values["proxy"] = hashlib.sha256(config.proxy.encode()).hexdigest() if config.proxy else ""
    policy: Policy = {
        "address": {name: values[name] for name in _ADDRESS},
        "robots": {"robots": values["robots"], "host_overrides": overrides, "obey": obeys},
    }
    if starts is not None:
        given = {"start URLs": sorted(starts), "depth": depth, _CONTROL: sorted(patterns)}
        policy["selection"] = {name: values[name] for name in _SELECTION} | given
    return policy


def changes(before: Mapping[str, Any], now: Policy) -> dict[str, list[str]]:
    """Return the names of the settings that differ between *before* and *now*, by part."""
    found = {}
    for part, values in now.items():
        known = before.get(part)
        if isinstance(known, dict):
            names = [name for name, value in values.items() if known.get(name, value) != value]
            if names:
                found[part] = [_shown(name) for name in names]
    return found


def read_policy(frontier: Path) -> dict[str, Any]:
    """Return what was in force last at the directory *frontier*; empty where that is not known."""
    try:
        known = parsed_file(frontier / FILE_NAME)
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def add_patterns(frontier: Path, patterns: Iterable[str], *, disk: Disk) -> None:
    """Write down that *patterns* of the control file have kept URLs out since the crawl began."""
    known = read_policy(frontier)
    selection = known.get("selection")
    if isinstance(selection, dict):
        named = sorted({*selection.get(_CONTROL, ()), *patterns})
        changed = {"selection": {**selection, _CONTROL: named}}
        write_policy(frontier, known, changed, requested_again=False, disk=disk)


def write_policy(
    frontier: Path,
    before: Mapping[str, Any],
    now: Policy | None = None,
    *,
    requested_again: bool,
    disk: Disk,
) -> None:
    """Write down that *now* is in force; with *requested_again*, that rows were made due now."""
    known = {**before, **(now or {})}
    if requested_again:
        known[REQUESTED_AGAIN] = unix_ms_now()
    if known == before:
        return
    replace_file(
        frontier / FILE_NAME,
        orjson.dumps(known, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        disk=disk,
    )


def requested_again_at(known: Mapping[str, Any]) -> int:
    """Return when rows were last made due before their time, in Unix milliseconds; 0 for never."""
    moment = known.get(REQUESTED_AGAIN, 0)
    return moment if isinstance(moment, int) else 0


def _shown(name: str) -> str:
    """Return the setting or argument that *name* stands for, as the operator knows it."""
    if name == "obey":
        return "ROBOTSTXT_OBEY"
    is_argument = " " in name or name in {"depth", _CONTROL}
    return name if is_argument else PREFIX + name.upper()
