"""The shape of a line: what in it is the same for all lines like it, and where the values stand.

Lines of one producer differ in their values only. So one line is read as JSON, and of others it is
enough to see that they are like it: what stands between values is equal, numbers are where numbers were.
A line that has the shape of one that was read is JSON of the same structure, if its octets are UTF-8
without control characters or backslashes, as `blocks.py` sees to. Pure.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

_NUMBER = r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,17})?"
_LITERAL = r"(?:true|false|null)"
_SCALAR = re.compile(rf"{_NUMBER}(?:[eE][+-]?[0-9]+)?|{_LITERAL}")
_ALONE = re.compile(rf":\s?({_NUMBER})[,}} ]*".encode())


class Link(NamedTuple):
    """What stands between two texts that are values, or before the first: names, brackets, numbers."""

    first: int
    """Number of the quotation mark that it begins with."""
    last: int
    """Number of the one that it ends with."""
    text: bytes
    """What it is; empty where that differs, because there is a number in it."""
    pattern: str
    """What it has to match then, for RE2."""


class Number(NamedTuple):
    """Where a number stands that is a value."""

    mark: int
    """The quotation mark that ends its name."""
    before: int
    """Octets between that mark and the number."""
    after: int
    """Octets between the number and the next mark, or the end of the line."""


class Shape(NamedTuple):
    """What the lines that are alike have in common."""

    quotes: int
    """Quotation marks in the line."""
    fields: dict[str, Any]
    """The object, its texts replaced by their places: the text after quotation mark 6 is "6"."""
    links: tuple[Link, ...]
    """All but the last, which ends with the line."""
    tail: Link
    """The last."""
    numbers: dict[str, Number]
    """Those of names that are there once."""

    def text(self, *path: str) -> int | None:
        """Return the place of the text under the names *path*; None where there is nothing.

        LookupError where what is there is not a text.
        """
        found: Any = self.fields
        for name in path:
            if not isinstance(found, dict):
                raise LookupError(f"{name} is not in an object")  # noqa: TRY004  # it is the data's fault
            found = found.get(name)
            if found is None:
                return None
        if not isinstance(found, str):
            raise LookupError(f"{path[-1]} is not a text")  # noqa: TRY004
        return int(found)


def shape_of(written: bytes) -> Shape | None:
    """Return the shape of the object *written*, without what stands around it; None where it has none.

    It has none if it is no JSON object, holds an escape, or is too odd to be one of many.
    """
    parts = written.split(b'"')
    if b"\\" in written or len(parts) < 4 or len(parts) % 2 == 0 or parts[0] != b"{":
        return None
    is_name = [place % 2 == 1 and parts[place + 1].startswith(b":") for place in range(len(parts))]
    marked = [
        b"%d" % (place - 1) if place % 2 and not is_name[place] else part
        for place, part in enumerate(parts)
    ]
    try:
        orjson.loads(written)
        fields = orjson.loads(b'"'.join(marked))
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    values = [place for place in range(1, len(parts) - 1, 2) if not is_name[place]]
    begins = [0, *values]
    ends = [*[place - 1 for place in values], len(parts) - 2]
    *links, tail = [
        _link(parts, begin, end, is_last=begin == begins[-1])
        for begin, end in zip(begins, ends, strict=True)
    ]
    numbers = {
        parts[place].decode(): number
        for place in range(1, len(parts) - 1, 2)
        if is_name[place] and (number := _number(parts, place))
    }
    return Shape(len(parts) - 1, fields, tuple(links), tail, numbers)


def _link(parts: list[bytes], first: int, last: int, *, is_last: bool) -> Link:
    between = parts[first + 1 : last + 1 + is_last]
    # Outside of texts is every other part; `first` is the mark that ends one, or begins the first name.
    begin = int(first % 2 == 0)
    ends = [b'"'] * (last - first) + [b""]
    if not any(_SCALAR.search(part.decode("utf-8", "replace")) for part in between[begin::2]):
        written = b"".join(part + end for part, end in zip(between, ends, strict=False))
        return Link(first, last, b'"' + written, "")
    pattern = "".join(
        (_pattern if place % 2 == begin else _quoted)(part.decode()) + end.decode()
        for place, (part, end) in enumerate(zip(between, ends, strict=False))
    )
    return Link(first, last, b"", f'^"{pattern}$')


def _number(parts: list[bytes], place: int) -> Number | None:
    """Return where the number stands that is the value of the name at *place*; None where none is."""
    found = _ALONE.fullmatch(parts[place + 1])
    if found is None or parts.count(parts[place]) > 1:
        return None
    return Number(place, found.start(1), len(parts[place + 1]) - found.end(1))


def _pattern(text: str) -> str:
    """Return what all that is like *text*, which is outside of texts, has to match."""
    pattern, done = "", 0
    for found in _SCALAR.finditer(text):
        pattern += _quoted(text[done : found.start()])
        pattern += _LITERAL if found[0].isalpha() else _NUMBER
        done = found.end()
    return pattern + _quoted(text[done:])


def _quoted(text: str) -> str:
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
