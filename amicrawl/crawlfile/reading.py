"""Crawl files read: TOML in, entries out, each with the place it came from, and everything amiss.

A file may extend others: their keys hold where it says nothing, table by table and key by key; a list
is replaced as a whole. A relative path that names an input starts from the directory of the file in
which it stands, so that a file means the same wherever it is used from.

Left out: what values mean. Only the keys, their tables and the kinds of their values are looked at here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.config import PREFIX
from amicrawl.crawlfile.faults import Fault
from amicrawl.crawlfile.keys import HOST, HOST_KEYS, KEYS, TABLES, key_at, tables_of
from amicrawl.crawlfile.lines import key_lines, parsed_toml
from amicrawl.crawlfile.secrets import FILE, is_reference
from amicrawl.disk import refuse_pipe
from amicrawl.errors import InputError
from amicrawl.invalid import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from amicrawl.crawlfile.keys import Key
    from amicrawl.crawlfile.lines import Path as KeyPath

SIZE_LIMIT = 1024**2
"""Bytes of the largest crawl file; seeds belong in a seed list."""
DEPTH_LIMIT = 8
"""How many files may extend one another in a row."""
FILES_LIMIT = 64
"""How often files are read for one crawl, whatever extends what."""

_MARK = re.compile(r" \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)$")
_SECRETS = frozenset({"auth", "cookies", "webhook_secret"})
_SHOWN = 60

EntryKey = tuple[str, ...]
"""`("", "spider")`, `("politeness", "delay")` or `("host", "example.org", "delay")`."""


class KeyEntry(NamedTuple):
    """What a file says under one key."""

    value: Any
    path: Path
    line: int
    items: tuple[int, ...] = ()
    """The lines of the parts of a list."""

    def fault(self, sentence: str, *, item: int | None = None) -> Fault:
        """Return *sentence* as a fault at this place, or at that of a part of the list."""
        line = self.items[item] if item is not None and item < len(self.items) else self.line
        return Fault(self.path, line, sentence)


@dataclass(slots=True)
class Sheet:
    """What a crawl file says, the files that it extends included."""

    path: Path
    entries: dict[EntryKey, KeyEntry] = field(default_factory=dict)
    bases: list[Path] = field(default_factory=list)
    """The files that it extends, those that they extend included."""
    faults: list[Fault] = field(default_factory=list)
    refused: set[EntryKey] = field(default_factory=set)
    """Keys that are there, with a value that does not fit."""


def read_sheet(path: Path) -> Sheet:
    """Return what the crawl file *path* says; raises InputError where it cannot be read."""
    return _FileReader().read(path, ())


class _FileReader:
    """One reading of a file and of what it extends."""

    def __init__(self) -> None:
        self._files = 0

    def read(self, path: Path, chain: tuple[Path, ...]) -> Sheet:
        """Read *path*, which the last of *chain* extends."""
        content = _content(path)
        self._files += 1
        sheet = Sheet(path)
        try:
            source = content.decode("utf-8-sig").replace("\r\n", "\n")
            table = parsed_toml(source)
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            sheet.faults.append(Fault(path, line, "The line is not UTF-8. Save the file as UTF-8."))
            return sheet
        except ValueError as error:  # no TOML, or a number of thousands of digits
            sheet.faults.append(_syntax_fault(path, str(error), source))
            return sheet
        except RecursionError:
            sheet.faults.append(Fault(path, None, "Brackets are nested too deeply. Take some away."))
            return sheet
        own = _OwnEntries(path, key_lines(source))
        own.take(table)
        sheet.faults += own.faults
        sheet.refused |= own.refused
        extends = own.entries.pop(("", "extends"), None)
        if extends is not None:
            self._take_bases(sheet, extends, (*chain, path.resolve()))
        sheet.entries.update(own.entries)
        return sheet

    def _take_bases(self, sheet: Sheet, extends: KeyEntry, chain: tuple[Path, ...]) -> None:
        names = [extends.value] if isinstance(extends.value, str) else extends.value
        for item, name in enumerate(names):
            base = sheet.path.parent / name
            complaint = self._objection(base, chain)
            if not complaint:
                try:
                    below = self.read(base, chain)
                except InputError as error:
                    complaint = f"extends: {error}"
                else:
                    sheet.bases += [base, *below.bases]
                    sheet.faults += below.faults
                    sheet.refused |= below.refused
                    sheet.entries.update(below.entries)
            if complaint:
                sheet.faults.append(extends.fault(complaint, item=item))

    def _objection(self, base: Path, chain: tuple[Path, ...]) -> str:
        """Return why *base* may not be extended by the last of *chain*; empty where it may."""
        if base.resolve() in chain:
            return f"extends goes round in a circle: {base} extends this file, or is it."
        if len(chain) > DEPTH_LIMIT:
            return f"extends goes deeper than {DEPTH_LIMIT} files. Let this one extend fewer in a row."
        if self._files >= FILES_LIMIT:
            return f"more than {FILES_LIMIT} files are extended in all. Extend fewer."
        return ""


def _content(path: Path) -> bytes:
    try:
        refuse_pipe(path)
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"Crawl file {path} cannot be read: {reason}. Check the path.") from error
    if len(content) > SIZE_LIMIT:
        raise InputError(f"Crawl file {path} is larger than {SIZE_LIMIT} bytes. Check the path.")
    return content


def _syntax_fault(path: Path, message: str, source: str) -> Fault:
    """Return what `tomllib` said, with the line in its place."""
    mark = _MARK.search(message)
    if mark is None:
        return Fault(path, None, f"{message}.")
    if mark[1] is None:
        return Fault(
            path,
            source.count("\n") + (not source.endswith("\n")),
            f"{message[: mark.start()]}, and the file ends here.",
        )
    return Fault(path, int(mark[1]), f"{message[: mark.start()]} (column {mark[2]}).")


class _OwnEntries:
    """What one file says itself, taken apart."""

    def __init__(self, path: Path, lines: Mapping[KeyPath, int]) -> None:
        self._path = path
        self._lines = lines
        self.entries: dict[EntryKey, KeyEntry] = {}
        self.faults: list[Fault] = []
        self.refused: set[EntryKey] = set()

    def take(self, table: Mapping[str, Any]) -> None:
        """Take every key of *table*."""
        for name, value in table.items():
            if name in TABLES:
                self._take_table(name, value)
            elif ("", name) in KEYS:
                self._take_value(KEYS["", name], (name,), ("", name), value)
            elif isinstance(value, dict):
                self._fault((name,), _unknown_table(name))
            else:
                self._fault((name,), _unknown("", name))
        self.faults.sort(key=lambda fault: fault.line or 0)

    def _take_table(self, table: str, value: Any) -> None:
        if not isinstance(value, dict):
            example = f'[{HOST}."example.org"]' if table == HOST else f"[{table}]"
            self._fault((table,), f"{table} is a table. Write {example} on a line of its own, once.")
        elif table == HOST:
            for host, entry in value.items():
                self._take_host(host, entry)
        else:
            for name, entry in value.items():
                if (key := key_at((table, name))) is not None:
                    self._take_value(key, (table, name), (table, name), entry)
                else:
                    self._fault((table, name), _unknown(table, name))

    def _take_host(self, host: str, value: Any) -> None:
        place = (HOST, host)
        if host in HOST_KEYS and not isinstance(value, dict):
            self._fault(place, f'{host} belongs to one host. Write it below [{HOST}."example.org"].')
            return
        if not isinstance(value, dict):
            self._fault(place, f'[{HOST}."{host}"] is a table. Write its keys below that line.')
            return
        for name, entry in value.items():
            if isinstance(entry, dict):
                self._fault(
                    (*place, name),
                    f"{host}.{name} is read as two names. Put a host name into quotes: "
                    f'[{HOST}."{_dotted(host, name, entry)}"].',
                )
            elif name in HOST_KEYS:
                self._take_value(HOST_KEYS[name], (*place, name), (*place, name), entry)
            else:
                self._fault((*place, name), _unknown(HOST, name))

    def _take_value(self, key: Key, place: KeyPath, entry_key: EntryKey, value: Any) -> None:
        if complaint := _complaint(key, entry_key[-1], value):
            self._fault(place, complaint)
            self.refused.add(entry_key)
            return
        items = [self._lines[*place, n] for n in range(len(value))] if isinstance(value, list) else []
        if key.kind.is_path:
            value = from_directory(value, self._path.parent)
        self.entries[entry_key] = KeyEntry(value, self._path, self._lines[place], tuple(items))

    def _fault(self, place: KeyPath, sentence: str) -> None:
        self.faults.append(Fault(self._path, self._lines.get(place), sentence))


def from_directory(value: Any, directory: Path) -> Any:
    """Return *value* (paths, addresses, references) with relative paths starting from *directory*."""
    if isinstance(value, list):
        return [from_directory(item, directory) for item in value]
    if value.startswith(FILE) and not value.startswith("file://"):
        return f"{FILE}{directory / value.removeprefix(FILE)}"
    if (
        not value
        or value == "-"
        or is_reference(value)
        or re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", value)
    ):
        return value
    return str(directory / value)


def _complaint(key: Key, name: str, value: Any) -> str:
    """Return what is wrong with *value* under *key*, written as *name*; empty where nothing is."""
    if key.name == "proxy" and isinstance(value, str) and "@" in value and not is_reference(value):
        return (
            "proxy has a user name or a password in it, which must not stand in a crawl file. Keep the "
            'whole URL elsewhere, and write proxy = "env:NAME" or "file:PATH".'
        )
    if _has_nul(value):
        return f"{name} has a NUL character in it, which no name and no message can have."
    if key.kind.fits(value):
        return ""
    if key.name in _SECRETS:
        # The value may be the secret, which must not reach the log of a check.
        return (
            f"{key.name} must not stand in a crawl file itself. Keep it elsewhere, and write "
            f'{key.name} = "env:NAME" or "file:PATH".'
        )
    return f"{name} is {shown(value)}, and must be {key.kind.wanted}."


def _has_nul(value: Any) -> bool:
    if isinstance(value, list | dict):
        return any(map(_has_nul, [*value, *value.values()] if isinstance(value, dict) else value))
    return isinstance(value, str) and "\0" in value


def shown(value: Any) -> str:
    """Return *value* as a sentence names it: short, and as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list of tables" if value and isinstance(value[0], dict) else "a list"
    text = str(value)
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return f'"{text}"' if isinstance(value, str) else text


def _unknown(table: str, name: str) -> str:
    """Say that *table* (the empty text: the top) has no key *name*, and where there is one like it."""
    where = f"in [{table}]" if table else "outside of any table"
    others = tables_of(name)
    if others:
        places = " or ".join(_named(other) for other in others)
        return f"{name} stands {where} and belongs {places}."
    here = list(HOST_KEYS) if table == HOST else [key for place, key in KEYS if place == table]
    meant = _meant(name, [*here, *(key for _, key in KEYS), *HOST_KEYS])
    if meant in here:
        return f"unknown key {name} {where}. Did you mean {meant}?"
    if meant:
        place = _named(tables_of(meant)[0])
        return f"unknown key {name} {where}. Did you mean {meant}, which belongs {place}?"
    return f"unknown key {name} {where}."


def _named(table: str) -> str:
    if table == HOST:
        return f'into [{HOST}."example.org"]'
    return f"into [{table}]" if table else "to the top of the file, before any table"


def _unknown_table(name: str) -> str:
    meant = _meant(name, TABLES)
    there_are = ", ".join(f"[{table}]" for table in TABLES)
    return f"unknown table [{name}]. " + (
        f"Did you mean [{meant}]?" if meant else f"There are {there_are}."
    )


def _meant(name: str, known: Sequence[str]) -> str:
    """Return the one of *known* that *name* was meant to be; empty where it is like none."""
    plain = name.lower().removeprefix(PREFIX.lower()).replace("-", "_")
    return nearest(plain, known)


def _dotted(host: str, name: str, below: Mapping[str, Any]) -> str:
    """Return the host name that was meant by a dotted key without quotes."""
    labels = [host, name]
    while len(below) == 1:
        name, value = next(iter(below.items()))
        if not isinstance(value, dict):
            break
        labels.append(name)
        below = value
    return ".".join(labels)
