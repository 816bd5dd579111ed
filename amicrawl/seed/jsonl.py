"""JSON Lines: one object a line, `url` and whatever its producer wants to find beside the capture. Pure.

`url`, `digest`, `etag` and `last_modified` are read; the other fields become `meta_json`, in their
order. A string stays as it is. Any other value becomes its JSON text: numbers exactly as written (`1.0`,
`1e3`, any number of digits), `true`, `false`, `null`, arrays and objects without white space. Of a field
that comes twice, the last value counts, at the first one's place.

A JSON array with one object on each line, as `amicrawl query --format json` writes it, is read as well.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

import orjson

from amicrawl.seed.fields import CONDITIONAL, conditionals, meta_json, url_of
from amicrawl.seed.lines import utf8
from amicrawl.seed.seed import NotASeedError, Seed, printable

if TYPE_CHECKING:
    from amicrawl.seed.fields import Flaw

MAX_DEPTH = 64
"""Arrays and objects that may lie in one another."""
MAX_VALUES = 500_000
"""About how many values a line may have: each takes many times its bytes while the line is read."""

_NOTHING = frozenset((b"", b"[", b"]"))
"""Lines without a seed: empty ones, and the begin and the end of an array."""
_BUSY = 64 * 1024
"""Bytes of a line up to which its values need not be counted."""
_DIFFERS = frozenset((float, list, dict))
"""Types of values whose text the fast reader does not keep."""
_READ_ALREADY = frozenset(("url", *CONDITIONAL))


class _Number(str):
    """A JSON number, as written."""

    __slots__ = ()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_AS_WRITTEN = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse)


def seed_of_json(line: bytes, flaw: Flaw) -> Seed | None:
    """Return the object on *line* as a seed; None for a blank line.

    Raises NotASeedError where there is no object or no URL in it. An invalid field for conditional
    requests is left out, and the reason is reported to *flaw*.
    """
    line = line.strip().removesuffix(b",")
    if line in _NOTHING:
        return None
    fields = _object(line)
    meta = {name: _text(value) for name, value in fields.items() if name not in _READ_ALREADY}
    text = meta_json(meta)
    return Seed(url_of(fields, flaw, text), *conditionals(fields, flaw), meta_json=text)


def _object(line: bytes) -> dict[str, object]:
    if len(line) > _BUSY and sum(map(line.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise NotASeedError(f"the object has more than {MAX_VALUES} values")
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        # The slower reader takes half surrogate pairs, and says better what is wrong.
        return _as_written(line)
    # To the fast one 1e3 and 1000.0 are one number, and -0 is 0; what was written is to be kept.
    if type(fields) is dict and b"-0" not in line and _DIFFERS.isdisjoint(map(type, fields.values())):
        return fields
    return _as_written(line)


def _as_written(line: bytes) -> dict[str, object]:
    """Read *line* with its numbers as text."""
    try:
        fields = _AS_WRITTEN.decode(utf8(line))
    except NotASeedError:
        raise
    except RecursionError as error:
        raise NotASeedError(f"the object is nested more than {MAX_DEPTH} deep") from error
    except ValueError as error:
        raise NotASeedError(_fault(line, error)) from error
    if type(fields) is not dict:
        raise NotASeedError("the line is JSON, but no object")
    return fields


def _fault(line: bytes, error: ValueError) -> str:
    """Return why *line* is not JSON, with the place in it, and not one in a document of one line."""
    if line.lstrip()[:4].lower() == b"http":
        return 'the line is a URL, and this list is JSON: write {"url": "..."}, or use -a format=lines'
    if isinstance(error, json.JSONDecodeError):
        return f"the line is not JSON: {printable(error.msg)}, at character {error.pos + 1} of it"
    return f"the line is not JSON: {printable(str(error))}"


def _text(value: object) -> str:
    """Return *value* as a string: itself, or its JSON text."""
    return str(value) if isinstance(value, str) else _json_text(value, MAX_DEPTH - 1)


def _json_text(value: object, depth: int) -> str:
    if isinstance(value, (list, dict)):
        if not depth:
            raise NotASeedError(f"the object is nested more than {MAX_DEPTH} deep")
        if isinstance(value, list):
            return "[" + ",".join(_json_text(item, depth - 1) for item in value) + "]"
        pairs = (f"{_quoted(name)}:{_json_text(item, depth - 1)}" for name, item in value.items())
        return "{" + ",".join(pairs) + "}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _quoted(value) if type(value) is str else str(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
