"""A crawl file written out: what it and all that it extends say together, as one TOML text. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from amicrawl.crawlfile.keys import HOST, HOST_KEYS, KEYS, TABLES
from amicrawl.crawlfile.reading import from_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.crawlfile.reading import Entry, EntryKey, Sheet

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def effective(sheet: Sheet, *, directory: Path) -> str:
    """Return what *sheet* says as TOML that extends nothing, each key with the place it came from.

    Secrets stay references. Paths of inputs are made absolute, those that are relative from *directory*:
    the text means the same wherever it is kept.
    """
    return "\n".join(_lines(sheet, directory)).strip("\n") + "\n"


def _lines(sheet: Sheet, directory: Path) -> Iterator[str]:
    for table in ("", *TABLES):
        keys = [key for key in KEYS if key[0] == table and key in sheet.entries]
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


def _pair(key: EntryKey, entry: Entry, directory: Path) -> str:
    known = HOST_KEYS[key[-1]] if key[0] == HOST else KEYS[key[0], key[1]]
    value = from_directory(entry.value, directory.absolute()) if known.kind.is_path else entry.value
    place = "".join(c if c.isprintable() else "?" for c in f"{entry.path}, line {entry.line}")
    return f"{key[-1]} = {_value(value)}  # {place}"


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
