"""The shape of a line: what in it is the same for all lines like it, and where the values stand.

Lines of one producer differ in their values only. So one line is read as JSON, and of others it is
enough to see that they are like it: what stands between values is equal, numbers are where numbers were.
A line that has the shape of one that was read is JSON of the same structure, if its octets are UTF-8
without control characters or backslashes, as `blocks.py` sees to. Pure.

Places in a line are counted in marks: its quotation marks, and the LF that ends it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 2048
"""Octets of a line without its texts and numbers: of a sidecar's, some 300."""
_SCALAR = re.compile(rb"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|true|false")


class Link(NamedTuple):
    """What stands between values, texts or scalars, and is the same in all lines: names and brackets."""

    first: int
    """The first mark in it."""
    last: int
    """The last, maybe the same."""
    before: int
    """Octets before the first mark."""
    width: int
    """Octets from the first mark to the last."""
    text: bytes


class Scalar(NamedTuple):
    """Where a number or a literal stands that is a value: alone between two marks."""

    mark: int
    """The mark before it, that ends its name."""
    before: int
    """Octets between that mark and the value."""
    after: int
    """Octets between the value and the next mark."""
    is_number: bool


class Shape(NamedTuple):
    """What the lines that are alike have in common."""

    quotes: int
    """Quotation marks in the line."""
    fields: dict[str, Any]
    """The object, its texts replaced by their places: the text after quotation mark 6 is "6"."""
    links: tuple[Link, ...]
    scalars: tuple[Scalar, ...]
    numbers: dict[str, Scalar]
    """Scalars that are numbers, by their names; those of names that are there once."""

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

    It has none if it is no JSON object, holds an escape, has two scalars with no mark between them, or
    is too much to be one of many.
    """
    parts = written.split(b'"')
    if b"\\" in written or len(parts) < 4 or len(parts) % 2 == 0 or parts[0] != b"{":
        return None
    # Texts are every other part. Of those that are values, and of scalars, only the place counts.
    for place in range(1, len(parts), 2):
        if not _is_name(parts, place):
            parts[place] = b""
    parts[::2] = [_SCALAR.sub(_usual, part) for part in parts[::2]]
    like = b'"'.join(parts)
    return _shape_like(like) if len(like) <= _LONGEST else None


def _is_name(parts: list[bytes], place: int) -> bool:
    return parts[place + 1].lstrip().startswith(b":")


def _usual(scalar: re.Match[bytes]) -> bytes:
    return b"0" if scalar[1] else b"true"


@lru_cache(maxsize=1024)
def _shape_like(written: bytes) -> Shape | None:
    """Return the shape of lines like *written*, whose texts are empty, whose scalars are 0 or true."""
    parts = written.split(b'"')
    marked = [
        b"%d" % (place - 1) if place % 2 and not _is_name(parts, place) else part
        for place, part in enumerate(parts)
    ]
    scalars: dict[int, Scalar] = {}
    try:
        fields = orjson.loads(b'"'.join(marked))
        for place in range(1, len(parts), 2):
            if found := _SCALAR.search(part := parts[place + 1]):
                scalars[place] = Scalar(
                    place, found.start(), len(part) - found.end(), found[1] is not None
                )
                if _SCALAR.search(part, found.end()):
                    return None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    numbers = {
        parts[place].decode(): scalar
        for place, scalar in scalars.items()
        if scalar.is_number and _is_name(parts, place) and parts.count(parts[place]) == 1
    }
    return Shape(len(parts) - 1, fields, tuple(_links(parts, scalars)), tuple(scalars.values()), numbers)


def _links(parts: list[bytes], scalars: dict[int, Scalar]) -> Iterator[Link]:
    """Yield what all lines like *parts* have in common, the line's end included."""
    first, last, before, width, text = 0, 0, 0, 0, b'"'
    for place in range(1, len(parts), 2):
        if _is_name(parts, place):
            last, width = place, len(text) - before + len(parts[place])
            text += parts[place] + b'"'
        else:
            yield Link(first, last, before, width, text)
            first, last, before, width, text = place, place, 0, 0, b'"'
        part = parts[place + 1]
        if scalar := scalars.get(place):
            yield Link(first, last, before, width, text + part[: scalar.before])
            before, text = scalar.after, part[len(part) - scalar.after :]
            first, width = place + 1, 0
        else:
            width = len(text) - before + len(part)
            text += part
        text += b'"' if place + 2 < len(parts) else b"\n"
        last = place + 1
    yield Link(first, last, before, width, text)
