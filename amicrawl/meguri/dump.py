"""A partition as one JSON object, for people, for tests and for other software.

    {"partition_id": 7, "host_key_lo": "0x...", "host_key_hi": "0x...", "created_hours": 482817,
     "meta": [["key", "value"], ...], "url_fields": [...], "urls": [[...], ...],
     "host_fields": [...], "hosts": [[...], ...], "arena_hex": "00...", "seen_filter_hex": null}

Rows are lists in the order of the columns. What has 64 bits is a string, since JSON numbers of other
readers do not hold it: keys, fingerprints and signatures as `0x` and 16 digits, references as decimals.
Floats are `0x` and the 8 digits of their bits, addresses 32 digits, everything else is a number. `meta`
and `seen_filter_hex` are null where there is none. Octets of `meta` that are not UTF-8 are the lone
surrogates that Python's `surrogateescape` makes of them.

Reading checks everything: a dump is foreign input. It takes some ten megabytes of memory, however
long the dump is, in one line or many: rows and strings go to files without a name, from which a frontier
file is written.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np
import orjson

from amicrawl.errors import InputError
from amicrawl.meguri.format.schema import (
    HOST_COLUMNS,
    HOST_ROW,
    ROW,
    URL_COLUMNS,
    Column,
    Partition,
    columns_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from amicrawl.meguri.format.schema import Columns
    from amicrawl.meguri.rows import RowTable
    from amicrawl.meguri.snapshot import Copies

FIELDS = (
    "partition_id",
    "host_key_lo",
    "host_key_hi",
    "created_hours",
    "meta",
    "url_fields",
    "urls",
    "host_fields",
    "hosts",
    "arena_hex",
    "seen_filter_hex",
)
"""The fields of a dump, in order; all of them are there."""

_ROWS = 8192  # rows turned into text at a time
_OCTETS = 1 << 20  # octets turned into digits at a time
_PIECE = 1 << 18
"""Characters of a dump that are looked at together; no row is as long."""
_LONGEST_VALUE = 16 * _PIECE
"""Characters that a value may have which is neither rows nor octets; the longest one is `meta`."""
_HEX_KEYS = frozenset({"host_key", "path_key", "content_fp", "simhash"})
_WIDE = re.compile(r"0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19}")
_BITS = re.compile(r"0x[0-9a-fA-F]{8}")
_ADDRESS = re.compile(r"[0-9a-fA-F]{32}")
_WHITE_SPACE = re.compile(r"[ \t\n\r]*")
# No value of a row has a bracket in it, so that these find where rows end without parsing them.
_ROWS_BEFORE_OTHERS = re.compile(r"(?>(?:[ \t\n\r]*+\[[^\[\]]*+\][ \t\n\r]*+,)*)")
_LAST_ROW = re.compile(r"([ \t\n\r]*+\[[^\[\]]*+\])[ \t\n\r]*+\]")


def dump_pieces(partition: Partition) -> Iterator[bytes]:
    """Yield the JSON text of *partition*, ASCII, piece by piece."""
    meta = [[_text(key), _text(value)] for key, value in partition.meta] or None
    head = {
        "partition_id": partition.partition_id,
        "host_key_lo": f"0x{partition.host_key_lo:016x}",
        "host_key_hi": f"0x{partition.host_key_hi:016x}",
        "created_hours": partition.created,
        "meta": meta,
        "url_fields": [column.name for column in URL_COLUMNS],
    }
    yield json.dumps(head).encode()[:-1] + b', "urls": ['
    yield from _row_pieces(partition.urls, URL_COLUMNS)
    fields = [column.name for column in HOST_COLUMNS]
    yield b'], "host_fields": ' + json.dumps(fields).encode() + b', "hosts": ['
    yield from _row_pieces(partition.hosts, HOST_COLUMNS)
    yield b'], "arena_hex": "'
    yield from _hex_pieces(partition.arena)
    if len(partition.seen_filter):
        yield b'", "seen_filter_hex": "'
        yield from _hex_pieces(partition.seen_filter)
        yield b'"}\n'
    else:
        yield b'", "seen_filter_hex": null}\n'


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def _hex_pieces(octets: bytes | memoryview) -> Iterator[bytes]:
    for at in range(0, len(octets), _OCTETS):
        yield bytes(octets[at : at + _OCTETS]).hex().encode()


def _row_pieces(table: Columns, columns: Sequence[Column]) -> Iterator[bytes]:
    rows = len(table[columns[0].name])
    for first in range(0, rows, _ROWS):
        written = [_written(column, table[column.name][first : first + _ROWS]) for column in columns]
        yield (b",\n" if first else b"\n") + orjson.dumps(list(zip(*written, strict=True)))[1:-1]


def _written(column: Column, values: np.ndarray) -> list[Any]:
    if column.name in _HEX_KEYS:
        return [f"0x{value:016x}" for value in values.tolist()]
    if column.dtype.kind == "f":
        return [f"0x{bits:08x}" for bits in np.ascontiguousarray(values).view("<u4").tolist()]
    if column.dtype.kind == "V":
        return [value.hex() for value in values.tolist()]
    if column.width == 8:
        return [str(value) for value in values.tolist()]
    listed: list[Any] = values.tolist()
    return listed


def read_dump(source: IO[bytes], copies: Copies) -> Partition:
    """Return the partition that the JSON text in *source* describes, with rows and strings in *copies*.

    Rows may be out of order, which only the writer of a file finds out. Raises InputError that says what
    is wrong where; OSError where *source* cannot be read.
    """
    text = _Text(source)
    readers: dict[str, Callable[[], Any]] = {
        "url_fields": lambda: _check_fields("url_fields", text.value(), URL_COLUMNS),
        "urls": lambda: _table("urls", text, URL_COLUMNS, copies.table(ROW, 0), copies),
        "host_fields": lambda: _check_fields("host_fields", text.value(), HOST_COLUMNS),
        "hosts": lambda: _table("hosts", text, HOST_COLUMNS, copies.table(HOST_ROW, 0), copies),
        "arena_hex": lambda: copies.blob(text.octets("arena_hex")),
        "seen_filter_hex": lambda: copies.blob(text.octets("seen_filter_hex", or_null=True)),
    }
    dump: dict[str, Any] = {}
    for name in text.fields():
        if name not in FIELDS:
            _refuse(f"it has a field {name!r:.80}, which no dump has")
        if name in dump:
            _refuse(f"it has the field {name} twice")
        dump[name] = readers.get(name, text.value)()
    for name in FIELDS:
        if name not in dump:
            _refuse(f"its field {name} is missing")
    return Partition(
        urls=dump["urls"],
        hosts=dump["hosts"],
        arena=dump["arena_hex"],
        partition_id=_number(dump, "partition_id"),
        created=_number(dump, "created_hours"),
        host_key_lo=_wide(dump, "host_key_lo"),
        host_key_hi=_wide(dump, "host_key_hi"),
        meta=_meta(dump["meta"]),
        seen_filter=dump["seen_filter_hex"],
    )


class _Text:
    """The JSON text of a dump, read piece by piece."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0
        self._ended = False

    def fields(self) -> Iterator[str]:
        """Yield the names of the object that the text is; the value is to be read before the next."""
        if not self._skip("{"):
            _refuse("it is not an object")
        if not self._skip("}"):
            while True:
                name = self.value()
                if not isinstance(name, str) or not self._skip(":"):
                    _refuse("it is not JSON: the name of a field is missing")
                yield name
                if self._skip("}"):
                    break
                if not self._skip(","):
                    _refuse(f"it is not JSON: something follows the field {name}, or it is cut off")
        if self._next():
            _refuse("something follows the object")

    def value(self) -> Any:
        """Return the next value."""
        self._next()
        most = _PIECE
        while True:
            self._fill(most)
            try:
                value, end = _decode(self._text, self._at)
            except RecursionError:
                _refuse("it is nested too deeply")
            except ValueError as error:
                if self._ended or most >= _LONGEST_VALUE:
                    _refuse(f"it is not JSON: {error}")
            else:
                # A number may go on in what was not read yet.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            most += _PIECE

    def rows(self, name: str) -> Iterator[list[Any]]:
        """Yield the rows of the table *name*, some at a time; none is checked but for being a list."""
        if not self._skip("["):
            _refuse(f"{name} is not a list")
        if self._skip("]"):
            return
        count = 0
        while True:
            self._fill(_PIECE)
            found = _ROWS_BEFORE_OTHERS.match(self._text, self._at)
            assert found is not None
            rows, is_last = found[0].rstrip()[:-1], False
            if not rows:
                found = _LAST_ROW.match(self._text, self._at)
                if found is None:
                    _refuse(f"{name}, row {count} is not a list of values, or the dump is cut off there")
                rows, is_last = found[1], True
            try:
                several = orjson.loads(f"[{rows}]")
            except ValueError as error:
                _refuse(f"{name} is not JSON at row {count} or behind it: {error}")
            yield several
            count += len(several)
            self._at = found.end()
            if is_last:
                return

    def octets(self, name: str, *, or_null: bool = False) -> Iterator[bytes]:
        """Yield the octets whose digits are the string that comes next; none for null."""
        if not self._skip('"'):
            if not or_null or self.value() is not None:
                _refuse(f"{name} is not a string of hexadecimal digits, two an octet")
            return
        ended = False
        while not ended:
            self._fill(_PIECE)
            end = self._text.find('"', self._at)
            ended = end >= 0
            if not ended:
                end = self._at + (len(self._text) - self._at) // 2 * 2
            digits, self._at = self._text[self._at : end], end + ended
            try:
                # `fromhex` alone would pass over white space between the digits.
                if (self._ended and not ended) or not (digits.isalnum() or not digits):
                    raise ValueError
                octets = bytes.fromhex(digits)
            except ValueError:
                _refuse(f"{name} is not a string of hexadecimal digits, two an octet")
            yield octets

    def _skip(self, sign: str) -> bool:
        """Pass over *sign*, if it comes next behind white space."""
        if self._next() != sign:
            return False
        self._at += 1
        return True

    def _next(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        while True:
            self._fill(1)
            found = _WHITE_SPACE.match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]

    def _fill(self, least: int) -> None:
        """Have *least* characters ahead, or all there are."""
        while len(self._text) - self._at < least and not self._ended:
            block = self._source.read(_PIECE)
            self._ended = not block
            try:
                more = self._decode(block, final=self._ended)
            except UnicodeDecodeError:
                _refuse("it is not UTF-8")
            self._text, self._at = self._text[self._at :] + more, 0


_decode = json.JSONDecoder().raw_decode


def _refuse(reason: str) -> NoReturn:
    raise InputError(f"The dump cannot be read: {reason}. Correct it, or export it again.")


def _number(dump: dict[str, Any], name: str) -> int:
    value = dump[name]
    if type(value) is not int or not 0 <= value < 1 << 32:
        _refuse(f"{name} is {value!r:.80}, not a whole number of 32 bits")
    return value


def _wide(dump: dict[str, Any], name: str) -> int:
    value = dump[name]
    if not isinstance(value, str) or not _WIDE.fullmatch(value) or int(value, 0) >> 64:
        _refuse(f"{name} is {value!r:.80}, not a string with a whole number of 64 bits")
    return int(value, 0)


def _meta(pairs: object) -> tuple[tuple[bytes, bytes], ...]:
    if pairs is None:
        return ()
    if not isinstance(pairs, list):
        _refuse("meta is neither null nor a list")
    read: list[tuple[bytes, bytes]] = []
    for number, pair in enumerate(pairs):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(t, str) for t in pair):
            _refuse(f"meta, pair {number} is {pair!r:.80}, not two strings")
        try:
            key, value = (text.encode("utf-8", "surrogateescape") for text in pair)
        except UnicodeEncodeError:
            _refuse(f"meta, pair {number} has a surrogate that stands for no octet")
        read.append((key, value))
    keys = [key for key, _ in read]
    if sorted(set(keys)) != keys:
        _refuse("the keys of meta are not sorted, or one comes twice")
    return tuple(read)


def _check_fields(name: str, fields: object, columns: Sequence[Column]) -> list[str]:
    wanted = [column.name for column in columns]
    if fields != wanted:
        _refuse(f"{name} does not list the {len(columns)} columns of this format in their order")
    return wanted


def _table(
    name: str, text: _Text, columns: Sequence[Column], table: RowTable[Any], copies: Copies
) -> dict[str, np.ndarray]:
    """Read the rows of the table *name* into *table*, and return its columns."""
    for rows in text.rows(name):
        first = len(table)
        for number, row in enumerate(rows, first):
            if type(row) is not list or len(row) != len(columns):
                _refuse(f"{name}, row {number} is not a list of {len(columns)} values")
        records = np.empty(len(rows), table.record)
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            records[column.name] = _column(name, first, values, column)
        table.extend(records.tobytes())
        copies.drop_pages()
    return columns_of(table.fill(len(table)))


def _column(name: str, first: int, values: Sequence[Any], column: Column) -> np.ndarray:
    """Return the *values* of *column* in the rows of the table *name* from number *first* on."""
    if column.dtype.kind == "V":
        check, what = _spelled(_ADDRESS), "a string of 32 hexadecimal digits"
    elif column.dtype.kind == "f":
        check, what = _spelled(_BITS), "a string of 0x and the 8 digits of a float's bits"
    elif column.width == 8:
        check, what = _is_wide, "a string with a whole number of 64 bits"
    else:
        limit = 1 << 8 * column.width
        check = lambda value: type(value) is int and 0 <= value < limit  # noqa: E731
        what = f"a whole number from 0 to {limit - 1}"
    if not all(map(check, values)):
        number, value = next((at, value) for at, value in enumerate(values, first) if not check(value))
        _refuse(f"{name}, row {number}, {column.name} is {value!r:.80}, not {what}")
    if column.dtype.kind == "V":
        return np.frombuffer(bytes.fromhex("".join(values)), column.dtype)
    if column.dtype.kind == "f":
        return np.array([int(value, 16) for value in values], "<u4").view(column.dtype)
    if column.width == 8:
        return np.array([int(value, 0) for value in values], column.dtype)
    return np.array(values, column.dtype)


def _spelled(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: type(value) is str and pattern.fullmatch(value) is not None


def _is_wide(value: object) -> bool:
    return type(value) is str and _WIDE.fullmatch(value) is not None and int(value, 0) < 1 << 64
