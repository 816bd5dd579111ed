"""What is wrong with values that fit their keys: expressions, names, networks, what contradicts what.

Pure, apart from `notes_on`, which looks whether the files that a crawl will read exist. A missing one
is not a fault of the crawl file: a check may run on a machine without the seeds and the secrets.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from amicrawl.config import CrawlConfig
from amicrawl.crawlfile.faults import Fault
from amicrawl.crawlfile.keys import CONFIG_TABLES, HOST, SEEDS, SITE, key_at
from amicrawl.crawlfile.schedule import SAMPLE, run_id_at
from amicrawl.crawlfile.secrets import ENV, FILE, exposure, is_reference
from amicrawl.discovery import IgnoreSet, Scope, set_names
from amicrawl.errors import UsageError
from amicrawl.fetch import proxy_of
from amicrawl.invalid import reason_of
from amicrawl.seed import is_web
from amicrawl.uploads import check_bucket_url
from amicrawl.urls import Refused, fetchable, host_name, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amicrawl.crawlfile.reading import Sheet

CONTACT = re.compile(r"[^\s@<>]+@[^\s@<>]+\.[^\s@<>]+|https?://[^\s/]+")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SECRET_FIELDS = {
    "authorization": f'auth in [{HOST}."example.org"]',
    "cookie": "cookies in [request]",
    "proxy-authorization": "proxy in [request]",
}
_OUR_FIELDS = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "upgrade"})


def faults_in(sheet: Sheet) -> Iterator[Fault]:
    """Yield what is wrong with single values."""
    for key, entry in sheet.entries.items():
        check = _CHECKS.get(key[-1])
        if check is None or key[0] == HOST:
            continue
        several = isinstance(entry.value, list)
        for item, value in enumerate(entry.value if several else [entry.value]):
            if complaint := check(value):
                yield entry.fault(f"{key[-1]}: {complaint}", item=item if several else None)
    hosts = {key[1]: entry for key, entry in reversed(sheet.entries.items()) if key[0] == HOST}
    for name, entry in hosts.items():
        if not host_name(name):
            yield entry.fault(
                f'[{HOST}."{name}"]: no host name. Write it without scheme, port and path.'
            )


def contradictions(sheet: Sheet, *, spider: str, needs_operator: bool = True) -> Iterator[Fault]:
    """Yield what is missing for a whole crawl by *spider*, and what does not go together.

    A crawl that does not *needs_operator* may have one from elsewhere.
    """
    if needs_operator or ("request", "operator") in sheet.entries:
        yield from _contact(sheet)
    for key, entry in sheet.entries.items():
        known = key_at(key)
        takers = known.spiders if known is not None else ()
        if takers and spider not in takers:
            yield entry.fault(
                f"{key[-1]} is for the spider {takers[0]}, and this is a crawl of the spider {spider}."
            )
    yield from _start_list(sheet, spider=spider)
    yield from _shards(sheet)
    yield from _schedule(sheet)
    yield from _auth(sheet)
    yield from _settings(sheet)


def seeds_missing(sheet: Sheet, *, spider: str) -> Iterator[Fault]:
    """Yield the fault that nothing says what is crawled, if so; arguments of a command line may."""
    wanted = {SEEDS: ("file",), SITE: ("url", "file")}[spider]
    given = sheet.refused | set(sheet.entries)
    if not any(("seeds", name) in given for name in wanted):
        example = 'file = "seeds.jsonl"' if spider == SEEDS else 'url = "https://example.org/"'
        yield Fault(sheet.path, None, f"no seeds. Write {example} below [seeds].")


def notes_on(sheet: Sheet) -> Iterator[Fault]:
    """Yield what a crawl would not find if it began here and now."""
    for key, entry in sheet.entries.items():
        if key == ("seeds", "file"):
            if _is_path(entry.value) and not os.access(entry.value, os.R_OK):
                yield entry.fault(f"the seed list {entry.value} does not exist, or cannot be read.")
        else:
            values = entry.value if isinstance(entry.value, list) else [entry.value]
            for value in values:
                if isinstance(value, str) and is_reference(value) and (complaint := _absent(value)):
                    yield entry.fault(f"{key[-1]}: {complaint}")


def _contact(sheet: Sheet) -> Iterator[Fault]:
    public = sheet.entries.get(("", "public"))
    operator = sheet.entries.get(("request", "operator"))
    if ("request", "operator") in sheet.refused or (public is not None and not public.value):
        return
    advice = (
        'Servers must be able to reach you: write operator = "Name, name@example.org" below [request], '
        "or public = false at the top if all hosts are your own."
    )
    if operator is None:
        yield Fault(sheet.path, None, f"no operator. {advice}")
    elif not CONTACT.search(operator.value):
        yield operator.fault(f"operator has no e-mail address and no URL in it. {advice}")


def _start_list(sheet: Sheet, *, spider: str) -> Iterator[Fault]:
    entry = sheet.entries.get(("seeds", "file"))
    if spider == SITE and entry is not None and is_web(entry.value):
        yield entry.fault(
            "file is an address, and the spider site reads its start URLs from a path. Write url in its "
            "place, and sitemaps = true below [scope] to have the sitemaps of the site read."
        )


def _shards(sheet: Sheet) -> Iterator[Fault]:
    shard, shards = sheet.entries.get(("seeds", "shard")), sheet.entries.get(("seeds", "shards"))
    if shard is not None and shard.value >= (shards.value if shards is not None else 1):
        yield shard.fault("shard must be less than shards: the first of four is 0 and the last 3.")


def _schedule(sheet: Sheet) -> Iterator[Fault]:
    recrawl = sheet.entries.get(("schedule", "recrawl"))
    if recrawl is None or not recrawl.value:
        return
    if ("schedule", "every") not in sheet.entries | dict.fromkeys(sheet.refused):
        yield recrawl.fault('recrawl needs an interval. Write every = "7d" beside it.')
    run_id = sheet.entries.get(("output", "run_id"))
    if run_id is not None and "%" in run_id.value:
        yield recrawl.fault(
            "recrawl continues in one directory, and run_id names a new one each time. Take one out."
        )


def _auth(sheet: Sheet) -> Iterator[Fault]:
    given = sheet.refused | set(sheet.entries)
    with_auth = {host_name(key[1]) for key in given if key[0] == HOST and key[2] == "auth"}
    for key, entry in sheet.entries.items():
        is_about_it = key[0] == HOST and key[2] in ("auth_port", "allow_plain")
        if is_about_it and host_name(key[1]) not in with_auth:
            yield entry.fault(f"{key[2]} says how auth is sent, and there is no auth for this host.")


def _settings(sheet: Sheet) -> Iterator[Fault]:
    """Yield what the configuration itself finds wrong."""
    given = {
        name: sheet.entries[table, name].value
        for name, table in CONFIG_TABLES.items()
        if (table, name) in sheet.entries and name != "run_id"
    }
    try:
        CrawlConfig(**given)
    except ValidationError as error:
        for fault in error.errors():
            reason = reason_of(fault)
            name = str(fault["loc"][0]) if fault["loc"] else _named_in(reason, given)
            entry = sheet.entries.get((CONFIG_TABLES.get(name, ""), name))
            place = entry.fault if entry is not None else lambda text: Fault(sheet.path, None, text)
            yield place(f"{name}: {reason}." if fault["loc"] else f"{reason}.")


def _named_in(reason: str, given: dict[str, Any]) -> str:
    """Return the key at which a sentence about several settings is reported."""
    words = reason.lower()
    return next((name for name in given if name in words), "inflight_max")


def _says(check: Callable[[str], object]) -> Callable[[str], str]:
    """Return a check that says what *check* raises."""

    def complaint(value: str) -> str:
        try:
            check(value)
        except UsageError as error:
            return f"{str(error).rstrip('.')}."
        return ""

    return complaint


def _web_address(value: str) -> str:
    found = fetchable(value)
    if isinstance(found, Refused):
        return f"{value!r} cannot be requested: {found.reason}."
    if without_userinfo(value) != value:
        return "the URL contains a user name or a password, which do not belong in a crawl file."
    return ""


def _start_url(value: str) -> str:
    # The spider takes its start URLs as one text, with white space between them.
    if len(value.split()) > 1:
        return f"{value!r} has white space in it. Write %20 for a space, and several URLs as a list."
    return _web_address(value)


def _seed_file(value: str) -> str:
    if value == "-" or _is_path(value):
        return ""
    advice = "" if is_web(value) else " Copy the list to this machine and write its path."
    return f"{complaint}{advice}" if (complaint := _web_address(value)) else ""


def _is_path(value: str) -> bool:
    return value != "-" and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", value)


def _proxy(value: str) -> str:
    return "" if not value or is_reference(value) else _says(proxy_of)(value)


def _webhook(value: str) -> str:
    return "" if is_reference(value) else _web_address(value)


def _set(value: str) -> str:
    names = set_names()
    return "" if value in names else f"there is no set {value!r}. There are {', '.join(names)}."


def _run_id(value: str) -> str:
    try:
        CrawlConfig(run_id=run_id_at(value, SAMPLE))
    except ValidationError:
        return "a code in it is not one of strftime, or gives an invalid directory name."
    return ""


def _plain_line(value: str) -> str:
    return "" if value.isprintable() else "it has a character that a header field cannot have."


def _header_fields(fields: dict[str, str]) -> str:
    for name, value in fields.items():
        lower = name.lower()
        if lower in _SECRET_FIELDS:
            return f"{name} is a secret. Use {_SECRET_FIELDS[lower]}."
        if lower == "user-agent":
            return "write user_agent in [request] instead."
        if lower in _OUR_FIELDS:
            return f"{name} is composed for each request. Take it out."
        if not _TOKEN.fullmatch(name) or not value.isprintable():
            return f"{name!r} cannot be sent as it is: a name is one word, and a value one line."
    return ""


def _absent(reference: str) -> str:
    """Return why the secret at *reference* cannot be had here and now; empty where it can."""
    if reference.startswith(ENV):
        name = reference.removeprefix(ENV)
        return "" if name in os.environ else f"the environment variable {name} is not set."
    path = Path(reference.removeprefix(FILE))
    if not os.access(path, os.R_OK):
        return f"{path} does not exist, or cannot be read."
    return exposure(path)


_CHECKS: dict[str, Callable[[Any], str]] = {
    "file": _seed_file,
    "url": _start_url,
    "surts": _says(lambda value: Scope(surts=(value,))),
    "hosts": _says(lambda value: Scope(hosts=frozenset({value}))),
    "domains": _says(lambda value: Scope(domains=frozenset({value}))),
    "include": _says(lambda value: Scope(include=(value,))),
    "exclude": _says(lambda value: Scope(exclude=(value,))),
    "ignore_sets": _set,
    "ignores": _says(lambda value: IgnoreSet().add(value)),
    "proxy": _proxy,
    "operator": _plain_line,
    "user_agent": lambda value: (
        "" if value.isascii() and value.isprintable() else "it must be one line of ASCII."
    ),
    "fields": _header_fields,
    "webhooks": _webhook,
    "run_id": _run_id,
    "bucket": _says(check_bucket_url),
}
