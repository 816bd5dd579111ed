"""A partition as one JSON object, for people, for tests and for other software.

    {"partition_id": 7, "host_key_lo": "0x...", "host_key_hi": "0x...", "created_hours": 482817,
     "meta": [["key", "value"], ...], "url_fields": [...], "urls": [[...], ...],
     "host_fields": [...], "hosts": [[...], ...], "arena_hex": "00...", "seen_filter_hex": null}

Rows are lists in the order of the columns. What has 64 bits is a string, since JSON numbers of other
readers do not hold it: keys, fingerprints and signatures as `0x` and 16 digits, references as decimals.
Floats are `0x` and the 8 digits of their bits, addresses 32 digits, everything else is a number. `meta`
and `seen_filter_hex` are null where there is none. Octets of `meta` that are not UTF-8 are the lone
surrogates that Python's `surrogateescape` makes of them.

Reading checks everything: a dump is foreign input. What has been read can be written as a file.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import orjson

from amicrawl.errors import InputError
from amicrawl.frontier.format.partition import Partition
from amicrawl.frontier.format.schema import HOST_COLUMNS, URL_COLUMNS, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from amicrawl.frontier.format.partition import Columns

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
_HEX_KEYS = frozenset({"host_key", "path_key", "content_fp", "simhash"})
_WIDE = re.compile(r"0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19}")
_BITS = re.compile(r"0x[0-9a-fA-F]{8}")
_ADDRESS = re.compile(r"[0-9a-fA-F]{32}")


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


def partition_of(text: bytes | str) -> Partition:
    """Return the partition that the JSON *text* describes; raises InputError that says what is amiss."""
    try:
        dump = json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise InputError(f"The dump is not JSON: {error}. Correct it, or export it again.") from error
    if not isinstance(dump, dict):
        _refuse("it is not an object")
    for name in FIELDS:
        if name not in dump:
            _refuse(f"its field {name} is missing")
    for name in dump:
        if name not in FIELDS:
            _refuse(f"it has a field {name!r:.80}, which no dump has")
    partition = Partition(
        urls=_table(dump, "urls", URL_COLUMNS),
        hosts=_table(dump, "hosts", HOST_COLUMNS),
        arena=_octets(dump, "arena_hex"),
        partition_id=_number(dump, "partition_id"),
        created=_number(dump, "created_hours"),
        host_key_lo=_wide(dump, "host_key_lo"),
        host_key_hi=_wide(dump, "host_key_hi"),
        meta=_meta(dump["meta"]),
        seen_filter=b"" if dump["seen_filter_hex"] is None else _octets(dump, "seen_filter_hex"),
    )
    _check_order(partition)
    return partition


def _refuse(reason: str) -> NoReturn:
    raise InputError(f"The dump cannot be read: {reason}. Correct it, or export it again.")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        _refuse("it has a field twice")
    return fields


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


def _octets(dump: dict[str, Any], name: str) -> bytes:
    value = dump[name]
    try:
        # Without the check it would pass over white space between the digits.
        if isinstance(value, str) and (value.isalnum() or not value):
            return bytes.fromhex(value)
    except ValueError:
        pass
    _refuse(f"{name} is not a string of hexadecimal digits, two an octet")


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


def _table(dump: dict[str, Any], name: str, columns: Sequence[Column]) -> dict[str, np.ndarray]:
    fields = name.removesuffix("s") + "_fields"
    if dump[fields] != [column.name for column in columns]:
        _refuse(f"{fields} does not list the {len(columns)} columns of this format in their order")
    rows = dump[name]
    if not isinstance(rows, list):
        _refuse(f"{name} is not a list")
    for number, row in enumerate(rows):
        if type(row) is not list or len(row) != len(columns):
            _refuse(f"{name}, row {number} is not a list of {len(columns)} values")
    if not rows:
        return {column.name: np.empty(0, column.dtype) for column in columns}
    return {
        column.name: _column(f"{name}, row {{}}, {column.name}", values, column)
        for column, values in zip(columns, zip(*rows, strict=True), strict=True)
    }


def _column(where: str, values: Sequence[Any], column: Column) -> np.ndarray:
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
        number, value = next((at, value) for at, value in enumerate(values) if not check(value))
        _refuse(f"{where.format(number)} is {value!r:.80}, not {what}")
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


def _check_order(partition: Partition) -> None:
    hosts, paths = partition.urls["host_key"], partition.urls["path_key"]
    falls = (hosts[1:] < hosts[:-1]) | ((hosts[1:] == hosts[:-1]) & (paths[1:] < paths[:-1]))
    keys = partition.hosts["host_key"]
    for name, unsorted in (("urls", falls), ("hosts", keys[1:] < keys[:-1])):
        if unsorted.any():
            number = int(unsorted.argmax()) + 1
            _refuse(f"{name}, row {number} has a smaller key than the row before it")
