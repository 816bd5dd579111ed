r"""Where the keys of a TOML text stand, which `tomllib` does not tell. Pure.

    lines = key_lines('[politeness]\ndelay = 2\n')
    lines[("politeness", "delay")]          2

A path is made of keys and, in arrays, of places: `("scope", "include", 0)`. A table's line is that of
its first header, or of the first key that brought it about. The text must be one that `tomllib` reads:
what is wrong with it is not noticed here.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from typing import Any

Path = tuple[str | int, ...]

_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TEXTS = (
    # At most two quotes may stand right before the three that end a text.
    re.compile(r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3,5}', re.DOTALL),
    re.compile(r"'''[^']*(?:'(?!'')[^']*)*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_BARE_VALUE = re.compile(r"[^,\]}\n#]*")


MOST_NAMES = 100
"""Names in one key; what `tomllib` needs grows with their square."""
_LONGER_KEY = re.compile(
    # Not begun within a name, nor at an escaped quote, so that nothing is looked at again and again.
    r"""(?<![A-Za-z0-9_\\-])(?:(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
    rf"{{{MOST_NAMES}}}"
)


def parsed_toml(text: str) -> dict[str, Any]:
    """Return what the TOML *text* says; ValueError, a TOMLDecodeError mostly, where it is none."""
    if found := _LONGER_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise tomllib.TOMLDecodeError(
            f"A key has more than {MOST_NAMES} names (at line {line}, column 1)"
        )
    return tomllib.loads(text.removeprefix("\ufeff"))


def key_lines(source: str) -> dict[Path, int]:
    """Return the line, from 1, of every key and every place in an array of the TOML text *source*."""
    return _Scanner(source).scan()


class _Scanner:
    """One pass over a text."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._ends = [match.start() for match in re.finditer("\n", source)]
        self._lines: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        """How many tables an array of tables has so far."""

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        self._skip(_GAP)
        while self._at < len(self._source):
            table = self._header() if self._peek() == "[" else self._pair(table)
            self._skip(_GAP)
        return self._lines

    def _header(self) -> Path:
        """Pass over `[a.b]` or `[[a.b]]` and return the path of the table that begins there."""
        line = self._line()
        is_array = self._source.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        keys = self._keys()
        self._at += 2 if is_array else 1
        path: Path = ()
        for key in keys[:-1]:
            path = self._latest(self._note((*path, key), line))
        path = self._note((*path, keys[-1]), line)
        if is_array:
            place = self._tables[path] = self._tables.get(path, -1) + 1
            return self._note((*path, place), line)
        return path

    def _latest(self, path: Path) -> Path:
        """Return the table that a header which goes on behind *path* means."""
        return (*path, self._tables[path]) if path in self._tables else path

    def _pair(self, table: Path) -> Path:
        """Pass over `key = value` in *table*, and return *table*."""
        line = self._line()
        path = table
        for key in self._keys():
            path = self._note((*path, key), line)
        self._at += 1  # the equals sign
        self._value(path)
        return table

    def _keys(self) -> list[str]:
        """Pass over a key and the dots in it, and the blanks on both sides."""
        keys = []
        while True:
            self._skip(_BLANK)
            if self._peek() in "\"'":
                keys.append(_unquoted(self._taken(_TEXTS[2] if self._peek() == '"' else _TEXTS[3])))
            else:
                keys.append(self._taken(_BARE_KEY))
            self._skip(_BLANK)
            if self._peek() != ".":
                return keys
            self._at += 1

    def _value(self, path: Path) -> None:
        self._skip(_BLANK)
        opening = self._peek()
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            for pattern in _TEXTS:
                match = pattern.match(self._source, self._at)
                if match is not None:
                    self._at = match.end()
                    return
            self._skip(_BARE_VALUE)

    def _array(self, path: Path) -> None:
        self._at += 1
        place = 0
        self._skip(_GAP)
        while self._peek() != "]":
            self._note((*path, place), self._line())
            self._value((*path, place))
            place += 1
            self._skip(_GAP)
            self._skip_comma()
        self._at += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        self._skip(_BLANK)
        while self._peek() != "}":
            self._pair(path)
            self._skip(_BLANK)
            self._skip_comma()
        self._at += 1

    def _skip_comma(self) -> None:
        if self._peek() == ",":
            self._at += 1
            self._skip(_GAP)

    def _note(self, path: Path, line: int) -> Path:
        self._lines.setdefault(path, line)
        return path

    def _line(self) -> int:
        return bisect_right(self._ends, self._at - 1) + 1

    def _peek(self) -> str:
        # An empty text would be found in any other.
        return self._source[self._at : self._at + 1] or "\0"

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._taken(pattern)

    def _taken(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._source, self._at)
        if match is None:
            raise ValueError(f"no TOML at character {self._at}")
        self._at = match.end()
        return match[0]


def _unquoted(key: str) -> str:
    read = tomllib.loads(f"key = {key}")["key"]
    assert isinstance(read, str)
    return read
