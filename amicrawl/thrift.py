"""Thrift's compact protocol, as far as Parquet's headers and footers need it: structs, bounded. Pure.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DEPTH = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = frozenset((4, 5, 6))
BINARY, LIST, STRUCT = _BINARY, _LIST, _STRUCT
"""Kinds of fields."""

_T = TypeVar("_T")


class NotThriftError(ValueError):
    """Bytes that are not a struct, or not the whole of one."""


def compact_struct(octets: bytes) -> tuple[dict[int, object], int]:
    """Return the fields of the struct that *octets* begin with, by number, and its length in bytes.

    Integers, booleans and structs are kept; of anything else only that it was there, as None. Raises
    NotThriftError where it is not whole, or deeper than 16 structs.
    """
    reader = CompactReader(octets)
    try:
        return reader.struct(0), reader.at
    except IndexError as error:
        raise NotThriftError("it is cut") from error


class CompactReader:
    """Reads structs field by field; each of its methods raises NotThriftError where it cannot."""

    INTEGERS = _INTEGERS
    """Kinds of fields that `integer` reads."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self.at = 0
        """The offset of what is read next."""

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and kind of each field of the struct that is next; the caller reads each."""
        number = 0
        while head := self._whole_byte():
            step = head >> 4
            number = number + step if step else self.integer()
            yield number, head & 15

    def integer(self) -> int:
        """Return the integer that is next, of up to 64 bits, with its sign."""
        try:
            return self._signed()
        except IndexError as error:
            raise NotThriftError("it is cut") from error

    def binary(self, most: int) -> bytes:
        """Return the string that is next; one of more than *most* bytes is refused."""
        length = self._checked(self._unsigned)
        if length > most:
            raise NotThriftError(f"a string has {length:,} bytes")
        begin = self.at
        self._skip(length)
        return self._octets[begin : self.at]

    def list_head(self) -> tuple[int, int]:
        """Return the length of the list that is next, and the kind of its values."""
        head = self._whole_byte()
        count = head >> 4 if head >> 4 < 15 else self._checked(self._unsigned)
        return count, head & 15

    def skip(self, kind: int) -> None:
        """Skip a field of *kind*."""
        if kind > _FALSE:
            self._checked(lambda: self._value(kind, 0))

    def _whole_byte(self) -> int:
        return self._checked(self._byte)

    def _checked(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except IndexError as error:
            raise NotThriftError("it is cut") from error

    def struct(self, depth: int) -> dict[int, object]:
        """Return the fields of the struct that is next, *depth* structs deep, by number."""
        if depth > _DEPTH:
            raise NotThriftError("it is too deep")
        fields: dict[int, object] = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self._signed()
            fields[number] = self._value(kind, depth) if kind > _FALSE else kind == _TRUE
        return fields

    def _value(self, kind: int, depth: int) -> object:
        if kind in _INTEGERS:
            return self._signed()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            self._skip_list(depth + 1)
        elif kind == _MAP:
            self._skip_map(depth + 1)
        elif kind == _BINARY:
            self._skip(self._unsigned())
        elif kind == _DOUBLE:
            self._skip(8)
        elif kind in (_BYTE, _TRUE, _FALSE):
            self._skip(1)
        else:
            raise NotThriftError(f"there is no type {kind}")
        return None

    def _skip_list(self, depth: int) -> None:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._unsigned()
        self._skip_values([head & 15], count, depth)

    def _skip_map(self, depth: int) -> None:
        count = self._unsigned()
        kinds = self._byte() if count else 0
        self._skip_values([kinds >> 4, kinds & 15], count, depth)

    def _skip_values(self, kinds: list[int], count: int, depth: int) -> None:
        if depth > _DEPTH:
            raise NotThriftError("it is too deep")
        # Each takes a byte at least, so that what is cut ends this soon.
        for _ in range(count):
            for kind in kinds:
                self._value(kind, depth)

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._octets):
            raise NotThriftError("it is cut")

    def _byte(self) -> int:
        octet = self._octets[self.at]
        self.at += 1
        return octet

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            octet = self._byte()
            value |= (octet & 127) << shift
            if octet < 128:
                return value
        raise NotThriftError("a number has no end")

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
