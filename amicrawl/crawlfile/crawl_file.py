"""A crawl file as a crawl takes it: a spider, its arguments, settings, a schedule; or written out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from amicrawl.config import PREFIX
from amicrawl.crawlfile.checks import contradictions, faults_in, notes_on, seeds_missing
from amicrawl.crawlfile.faults import CrawlFileError, Fault
from amicrawl.crawlfile.keys import HOST, HOST_KEYS, KEYS, RECRAWL, SEEDS, SITE, TABLES, key_at
from amicrawl.crawlfile.reading import from_directory, read_sheet
from amicrawl.crawlfile.schedule import CrawlSchedule, duration_of, run_id_at
from amicrawl.urls import host_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.crawlfile.reading import EntryKey, KeyEntry, Sheet

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class CrawlFile:
    """What a crawl file says, without faults."""

    path: Path
    spider: str
    """`seeds` or `site`."""
    arguments: dict[str, str] = field(default_factory=dict)
    """The spider's arguments, as a command line gives them."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings by name; secrets as references."""
    schedule: CrawlSchedule = field(default_factory=CrawlSchedule)
    run_id: str = ""
    """As written, with codes of strftime; `settings` holds what they mean now."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A crawl file and everything that can be said against it."""

    path: Path
    sheet: Sheet
    file: CrawlFile
    faults: tuple[Fault, ...]
    """What keeps it from being followed."""
    notes: tuple[Fault, ...]
    """What a crawl would miss here and now; another machine, or a later hour, may have it."""
    is_part: bool
    """Whether it was looked at as a part of others."""


def read_crawl_file(path: Path, *, needs_operator: bool = True) -> CrawlFile:
    """Return what the crawl file *path* says; that of a job need not say who operates the crawl.

    Raises CrawlFileError with everything that is wrong with it, and InputError where it cannot be read.
    Seeds need not be in it: the command that starts the crawl may name them.
    """
    sheet = read_sheet(path)
    spider = spider_of(sheet)
    faults = [*sheet.faults, *faults_in(sheet)]
    if not _is_unread(sheet):
        faults += contradictions(sheet, spider=spider, needs_operator=needs_operator)
    if faults:
        raise CrawlFileError(_sorted(faults, sheet))
    return _assembled(sheet, spider)


def examine(path: Path, *, is_part: bool = False) -> Examined:
    """Return the crawl file *path* with all its faults; raises InputError where it cannot be read.

    A file that *is_part* of others need not be enough for a crawl.
    """
    sheet = read_sheet(path)
    spider = spider_of(sheet)
    faults = [*sheet.faults, *faults_in(sheet)]
    if not is_part and not _is_unread(sheet):
        faults += contradictions(sheet, spider=spider)
        faults += seeds_missing(sheet, spider=spider)
    return Examined(
        path=path,
        sheet=sheet,
        file=_assembled(sheet, spider) if not faults else CrawlFile(path, spider),
        faults=_sorted(faults, sheet),
        notes=_sorted(list(notes_on(sheet)), sheet),
        is_part=is_part,
    )


def spider_of(sheet: Sheet) -> str:
    """Return the spider that *sheet* names, or the one that its seeds are for."""
    named = sheet.entries.get(("", "spider"))
    if named is not None:
        return str(named.value)
    return SITE if ("seeds", "url") in sheet.entries else SEEDS


def _is_unread(sheet: Sheet) -> bool:
    """Return whether the text could not be read at all; what is missing in it then is not known."""
    return not sheet.entries and not sheet.refused and bool(sheet.faults)


def _sorted(faults: list[Fault], sheet: Sheet) -> tuple[Fault, ...]:
    """Return *faults* file by file, the top one first, each once and by line."""
    order = {path: n for n, path in enumerate([sheet.path, *sheet.bases])}
    return tuple(
        sorted(dict.fromkeys(faults), key=lambda fault: (order.get(fault.path, 0), fault.line or 0))
    )


def _assembled(sheet: Sheet, spider: str) -> CrawlFile:
    values = {key: entry.value for key, entry in sheet.entries.items()}
    settings: dict[str, Any] = {}
    arguments: dict[str, str] = {}
    for place, key in KEYS.items():
        if place in values and key.setting:
            settings[key.setting] = values[place]
        elif place in values and key.spiders:
            arguments[key.name] = _argument(values[place])
    run_id = str(values.get(("output", "run_id"), ""))
    if run_id:
        settings[f"{PREFIX}RUN_ID"] = run_id_at(run_id, datetime.now(UTC))
    if ages := {key[1]: entry.value for key, entry in sheet.entries.items() if key[0] == RECRAWL}:
        every_page = {"*": ages.pop("after")} if "after" in ages else {}
        settings[f"{PREFIX}RECRAWL_AFTER"] = every_page | ages
    if overrides := _overrides(sheet):
        settings[f"{PREFIX}HOST_OVERRIDES"] = overrides
    every = values.get(("schedule", "every"))
    return CrawlFile(
        path=sheet.path,
        spider=spider,
        arguments=arguments,
        settings=settings,
        schedule=CrawlSchedule(
            every=duration_of(every) if every is not None else None,
            recrawl=bool(values.get(("schedule", "recrawl"), False)),
        ),
        run_id=run_id,
    )


def _argument(value: Any) -> str:
    """Return *value* as a command line gives it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return " ".join(value) if isinstance(value, list) else str(value)


def _overrides(sheet: Sheet) -> dict[str, dict[str, Any]]:
    overrides: dict[str, dict[str, Any]] = {}
    for key, entry in sheet.entries.items():
        if key[0] == HOST:
            overrides.setdefault(host_name(key[1]), {})[key[2]] = entry.value
    return overrides


def effective(sheet: Sheet, *, directory: Path) -> str:
    """Return what *sheet* says as TOML that extends nothing, each key with the place it came from.

    Secrets stay references. Paths of inputs are made absolute, those that are relative from *directory*:
    the text means the same wherever it is kept.
    """
    return "\n".join(_lines(sheet, directory)).strip("\n") + "\n"


def _lines(sheet: Sheet, directory: Path) -> Iterator[str]:
    for table in ("", *TABLES):
        keys: list[EntryKey] = [key for key in KEYS if key[0] == table and key in sheet.entries]
        keys += [key for key in sheet.entries if key[0] == table == RECRAWL and key not in keys]
        if keys and table:
            yield from ("", f"[{table}]")
        for key in keys:
            yield _pair(key, sheet.entries[key], directory)
    hosts = dict.fromkeys(key[1] for key in sheet.entries if key[0] == HOST)
    for host in hosts:
        yield from ("", f"[{HOST}.{_text(host)}]")
        for name in HOST_KEYS:
            if (HOST, host, name) in sheet.entries:
                yield _pair((HOST, host, name), sheet.entries[HOST, host, name], directory)


def _pair(key: EntryKey, entry: KeyEntry, directory: Path) -> str:
    known = key_at(key)
    assert known is not None
    value = from_directory(entry.value, directory.absolute()) if known.kind.is_path else entry.value
    place = "".join(c if c.isprintable() else "?" for c in f"{entry.path}, line {entry.line}")
    return f"{_key(key[-1])} = {_value(value)}  # {place}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_key(name)} = {_value(entry)}" for name, entry in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # A basic string of TOML is one of JSON, but for DEL, which JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
