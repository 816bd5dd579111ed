"""Lines: a stream of bytes cut at line feeds, and the seed lists with a URL or a JSON object on each.

A line may be 8 MiB; of a longer one nothing is kept. The last line needs no line feed, unless the source
was cut: half a URL is another URL.

Of an object `url`, `digest`, `etag` and `last_modified` are read; the other fields become `meta_json`,
in their order. A string stays as it is. Any other value becomes its JSON text: numbers exactly as
written (`1.0`, `1e3`, any number of digits), `true`, `false`, `null`, arrays and objects without white
space. Of a field that comes twice, the last value counts, at the first one's place. A JSON array with
one object on each line, as `amicrawl query --format json` writes it, is read as well.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

import orjson

from amicrawl.errors import InputError
from amicrawl.seed.fields import CONDITIONAL, WHITE_SPACE, checked_url, conditionals, meta_json, url_of
from amicrawl.seed.seed import NotASeedError, Seed, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from amicrawl.seed.fields import Flaw
    from amicrawl.seed.seed import FaultLog
    from amicrawl.seed.source import SeedSource

MAX_LINE = 8 * 1024**2
"""Bytes that a line may have, its end not counted."""

_BOM = b"\xef\xbb\xbf"
_BLANKS = WHITE_SPACE.encode()


def lines_of(blocks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of *blocks* without line feeds; None for one that is longer than `MAX_LINE`."""
    pending: list[bytes] = []
    size = 0
    for block in blocks:
        first, *rest = block.split(b"\n")
        size += len(first)
        if size <= MAX_LINE:
            pending.append(first)
        else:
            pending.clear()
        if not rest:
            continue
        yield b"".join(pending) if size <= MAX_LINE else None
        last = rest.pop()
        for line in rest:
            yield line if len(line) <= MAX_LINE else None
        pending, size = [last], len(last)
    if size:
        yield b"".join(pending) if size <= MAX_LINE else None


def read_lines(
    source: SeedSource, faults: FaultLog, *, parse: Callable[[bytes, Flaw], Seed | None]
) -> Generator[Seed, None, None]:
    """Yield what *parse* makes of each line of *source*: a seed, or None for nothing.

    Lines for which it raises NotASeedError are reported and passed over.
    """
    number = 0

    def flaw(reason: str) -> None:
        faults.flaw(source.name, number, reason)

    try:
        for number, line in enumerate(lines_of(source.blocks), 1):
            if line is None:
                too_long = NotASeedError(f"the line is longer than {MAX_LINE} bytes")
                faults.leave_out(source.name, number, too_long)
                continue
            try:
                seed = parse(line.removeprefix(_BOM) if number == 1 else line, flaw)
            except NotASeedError as reason:
                faults.leave_out(source.name, number, reason)
                continue
            if seed is not None:
                yield seed
    except InputError as error:
        faults.end_early(source.name, number + 1, error)


def seed_of_line(line: bytes, flaw: Flaw) -> Seed | None:
    """Return the URL on *line* as a seed; None for a blank line or one that starts with `#`."""
    text = line.strip(_BLANKS)
    if not text or text.startswith(b"#"):
        return None
    if text.startswith(b"{"):
        raise NotASeedError("the line is JSON; give jsonl as the format")
    if text.startswith(b"["):
        raise NotASeedError(
            "a JSON array is not a seed list; convert it to one object per line with jq -c '.[]'"
        )
    if b"\t" in text or b"\r" in text:
        # Neither is ever in a URL; escaped, both would make another one of it.
        raise NotASeedError(_IN_A_LINE[b"\r" in text])
    return Seed(checked_url(utf8(text), flaw))


_IN_A_LINE = (
    "the line has a tab in it, as between columns; give its URL alone",
    "the line has a carriage return in it; end each line with a line feed (tr '\\r' '\\n')",
)


def seed_of_cell(line: bytes, flaw: Flaw) -> Seed | None:
    """Return the same of a file that is called a table: a line with columns is not taken for a URL."""
    if b"," in line or b"\t" in line.strip(_BLANKS):
        raise NotASeedError(
            "the line has columns; give its URL alone, or JSON Lines or Parquet, or lines as the format"
        )
    return seed_of_line(line, flaw)


def utf8(text: bytes) -> str:
    """Decode *text*; raise NotASeedError where it is not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise NotASeedError(f"the line is not UTF-8 (byte {error.start + 1} of it)") from error


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
